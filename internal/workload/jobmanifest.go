package workload

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shadowSuffix ends the name of a shadow: a Job that keeps the manifest of another one.
const shadowSuffix = "-keyturn"

// maxShadowName is the longest name of a shadow. The name of a Job may have 63 characters, and that of an Indexed Job must leave room for the
// index of its last pod.
const maxShadowName = 52

// shadowManager is the managedBy of a shadow: the Job controller starts no pods of it, even if someone resumes it, as queues do.
const shadowManager = "keyturn.dev/actuator"

// shadowName returns the name of the shadow of the Job with the given name.
func shadowName(name string) string {
	if len(name)+len(shadowSuffix) > maxShadowName {
		return "job-" + shortHash(name, 8) + shadowSuffix
	}
	return name + shadowSuffix
}

// otherShadowName returns the name of the shadow while the shadow of an earlier attempt still has the one that shadowName returns.
func otherShadowName(name string) string {
	return "job-" + shortHash(name+"/again", 8) + shadowSuffix
}

// shadowOf returns the Job that keeps the manifest of the given one while that is recreated. It starts no pods.
func shadowOf(job *batchv1.Job) *batchv1.Job {
	shadow := &batchv1.Job{ObjectMeta: manifestMeta(&job.ObjectMeta), Spec: *job.Spec.DeepCopy()}
	shadow.Name, shadow.Spec.Suspend = shadowName(job.Name), new(true)
	if manager := shadow.Spec.ManagedBy; manager == nil || *manager == batchv1.JobControllerName {
		shadow.Spec.ManagedBy = new(shadowManager)
	}
	metav1.SetMetaDataAnnotation(&shadow.ObjectMeta, annotationRecreates, job.Name+"/"+string(job.UID))
	copyMark(&shadow.Spec.Template.ObjectMeta, job.Annotations)
	return withoutSystem(shadow)
}

// recreatedOf returns the Job to create from the manifest that a shadow keeps.
func recreatedOf(shadow *batchv1.Job) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: manifestMeta(&shadow.ObjectMeta), Spec: *shadow.Spec.DeepCopy()}
	job.Name, _, _ = recreatedBy(&shadow.ObjectMeta)
	job.Spec.Suspend = new(false) // A suspended Job is not recreated.
	if manager := job.Spec.ManagedBy; manager != nil && *manager == shadowManager {
		job.Spec.ManagedBy = nil
	}
	delete(job.Annotations, annotationRecreates)
	return withoutSystem(job)
}

// manifestMeta returns the metadata that a client wrote, without that of the API server. Finalizers are left out, because
// they belong to one object.
func manifestMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, Labels: maps.Clone(meta.Labels), Annotations: maps.Clone(meta.Annotations),
		OwnerReferences: meta.OwnerReferences,
	}
}

// withoutSystem removes what the API server has written into a Job to select its pods, unless the Job's author selects them.
func withoutSystem(job *batchv1.Job) *batchv1.Job {
	if manual := job.Spec.ManualSelector; manual != nil && *manual {
		return job
	}
	job.Spec.Selector = nil
	for _, label := range []string{"controller-uid", "job-name", batchv1.ControllerUidLabel, batchv1.JobNameLabel} {
		delete(job.Labels, label)
		delete(job.Spec.Template.Labels, label)
	}
	return job
}
