package workload

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// annotationRecreates, on a Job, says that it keeps the manifest of another one that is being recreated: "<name>/<uid>" of that.
const annotationRecreates = "keyturn.dev/recreates"

// jobs are Jobs. Their template cannot be changed, so they are recreated, even when they are finished.
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

// isRecreatable reports whether a Job is nobody else's to make: neither a CronJob's, or another controller's, nor one that keeps a manifest, nor
// one that is being deleted.
func isRecreatable(meta *metav1.ObjectMeta) bool {
	_, kept := meta.Annotations[annotationRecreates]
	return !kept && meta.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(meta) == nil
}
