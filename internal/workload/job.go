package workload

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		objects := typed(client)
		objects.unrecorded = c.Unrecorded
		return recreatedJobs{objects, client}
	},
	read: reader(func(job *batchv1.Job) parts {
		p := parts{
			meta: &job.ObjectMeta, template: &job.Spec.Template,
			progress: Progress{State: Complete, Message: "the job was recreated with the new content"},
		}
		if name, _, is := recreatedBy(&job.ObjectMeta); is {
			p.StandsFor = Key{Kind: "job", Namespace: job.Namespace, Name: name}
		}
		p.Deaf, p.Suspended = !isRecreatable(&job.ObjectMeta), job.Spec.Suspend != nil && *job.Spec.Suspend
		return p
	}),
	template: specTemplate, strategy: starting,
}

// Job returns the kind Job.
func Job() Kind { return jobs }

// recreatedBy returns the name and the UID of the Job whose manifest a shadow keeps, and false for a Job that is not a shadow.
func recreatedBy(meta *metav1.ObjectMeta) (name string, uid types.UID, is bool) {
	name, text, is := strings.Cut(meta.Annotations[annotationRecreates], "/")
	return name, types.UID(text), is && name != "" && name != meta.Name && text != ""
}

// isRecreatable reports whether a Job has no controller such as a CronJob, is not a shadow, and is not being deleted.
func isRecreatable(meta *metav1.ObjectMeta) bool {
	_, kept := meta.Annotations[annotationRecreates]
	return !kept && meta.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(meta) == nil
}

// shadowSuffix is the suffix of shadows: Jobs that keep the manifest of another one.
const shadowSuffix = "-keyturn"

// maxShadowName is the maximum length of a shadow's name. With the index of its last pod, that of an Indexed Job must fit into 63 characters.
const maxShadowName = 52

// shadowManager is the managedBy of shadows: the Job controller starts no pods for them, even if a queue resumes them.
const shadowManager = "keyturn.dev/actuator"

// shadowName returns the name of the shadow of the Job with the given name.
func shadowName(name string) string {
	if len(name)+len(shadowSuffix) > maxShadowName {
		return "job-" + shortHash(name, 8) + shadowSuffix
	}
	return name + shadowSuffix
}

// otherShadowName returns the name to use while the shadow of an earlier attempt has the name from shadowName.
func otherShadowName(name string) string { return "job-" + shortHash(name+"/again", 8) + shadowSuffix }

// shadowOf returns a Job that keeps the manifest of the given one while that is recreated. It starts no pods.
func shadowOf(job *batchv1.Job) *batchv1.Job {
	shadow := manifestOf(job)
	shadow.Name, shadow.Spec.Suspend = shadowName(job.Name), new(true)
	if manager := shadow.Spec.ManagedBy; manager == nil || *manager == batchv1.JobControllerName {
		shadow.Spec.ManagedBy = new(shadowManager)
	}
	metav1.SetMetaDataAnnotation(&shadow.ObjectMeta, annotationRecreates, job.Name+"/"+string(job.UID))
	copyMark(&shadow.Spec.Template.ObjectMeta, job.Annotations)
	return shadow
}

// recreatedOf returns the Job to create from the manifest that a shadow keeps.
func recreatedOf(shadow *batchv1.Job) *batchv1.Job {
	job := manifestOf(shadow)
	job.Name, _, _ = recreatedBy(&shadow.ObjectMeta)
	job.Spec.Suspend = new(false) // A suspended Job is not recreated.
	if manager := job.Spec.ManagedBy; manager != nil && *manager == shadowManager {
		job.Spec.ManagedBy = nil
	}
	delete(job.Annotations, annotationRecreates)
	return job
}

// manifestOf returns a Job as its author wrote it: without finalizers, which belong to one object, and without the fields that the API server adds to
// select its pods, unless the author set them.
func manifestOf(job *batchv1.Job) *batchv1.Job {
	written := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name, Namespace: job.Namespace, Labels: maps.Clone(job.Labels), Annotations: maps.Clone(job.Annotations),
			OwnerReferences: job.OwnerReferences,
		},
		Spec: *job.Spec.DeepCopy(),
	}
	if manual := job.Spec.ManualSelector; manual != nil && *manual {
		return written
	}
	written.Spec.Selector = nil
	for _, label := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		delete(written.Labels, label)
		delete(written.Spec.Template.Labels, label)
	}
	return written
}

// RunsOnce reports whether each roll is a separate run: of a Job, or of a CronJob whose rolls start a Job. Its pods are as old as the workload.
func (w *Workload) RunsOnce() bool { return w.starts || w.ID.Kind == jobs.Name }
