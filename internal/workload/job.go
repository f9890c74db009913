package workload

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// annotationRecreates, on a Job, says that it keeps the manifest of another Job that is being recreated. Its value is "<name>/<uid>" of that Job.
const annotationRecreates = "keyturn.dev/recreates"

// jobs is the kind Job. The template of a Job cannot be changed, so a roll recreates the Job, even a finished one.
var jobs = Kind{
	Name: "job", APIVersion: "batch/v1", Title: "Job", Resource: "jobs", Manifest: "deploy/components/jobs",
	Example: &batchv1.Job{},
	client: func(c Clients, namespace string) Objects {
		client := c.Typed.BatchV1().Jobs(namespace)
		return recreatedJobs{typed(client), patches[batchv1.Job, *batchv1.Job]{client, c.Unrecorded}, client}
	},
	read: func(obj runtime.Object) (parts, bool) {
		job, ok := obj.(*batchv1.Job)
		if !ok {
			return parts{}, false
		}
		p := parts{
			meta: &job.ObjectMeta, template: &job.Spec.Template, suspended: job.Spec.Suspend != nil && *job.Spec.Suspend,
			progress: Progress{State: Complete, Message: "the job was recreated with the new content"},
		}
		if name, _, is := recreatedBy(&job.ObjectMeta); is {
			p.standsFor = Key{Kind: "job", Namespace: job.Namespace, Name: name}
		}
		p.deaf = !isRecreatable(&job.ObjectMeta)
		return p, true
	},
	template: specTemplate, strategy: starting,
}

// Job returns the kind Job.
func Job() Kind { return jobs }

// recreatedBy returns the name and the UID of the Job whose manifest a shadow keeps, and false for a Job that is no shadow.
func recreatedBy(meta *metav1.ObjectMeta) (name string, uid types.UID, is bool) {
	name, text, is := strings.Cut(meta.Annotations[annotationRecreates], "/")
	return name, types.UID(text), is && name != "" && name != meta.Name && text != ""
}

// isRecreatable reports whether Keyturn may recreate a Job: it belongs to no CronJob and no other controller, keeps no manifest, and is not
// being deleted.
func isRecreatable(meta *metav1.ObjectMeta) bool {
	_, kept := meta.Annotations[annotationRecreates]
	return !kept && meta.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(meta) == nil
}
