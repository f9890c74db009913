package workload

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// cronJobs is the kind CronJob. A roll changes the job template, which takes effect with the next Job. It starts no Job and affects no running one.
var cronJobs = Kind{
	Name: "cronjob", APIVersion: "batch/v1", Title: "CronJob", Resource: "cronjobs",
	Example: &batchv1.CronJob{},
	client:  func(c Clients, namespace string) Objects { return typed(c.Typed.BatchV1().CronJobs(namespace)) },
	read: reader(func(cronJob *batchv1.CronJob) parts {
		return parts{
			meta: &cronJob.ObjectMeta, template: &cronJob.Spec.JobTemplate.Spec.Template,
			progress: Progress{State: Complete, Message: "the next job starts with the new content"},
		}
	}),
	template: "/spec/jobTemplate/spec/template", strategy: annotating,
}

// annotationInstantiate is the annotation by which kubectl marks a Job that was created manually from a CronJob.
const annotationInstantiate = "cronjob.kubernetes.io/instantiate"

// StartedCronJob returns the kind CronJob whose rolls start a Job immediately, without a change of the template.
func StartedCronJob() Kind {
	k := cronJobs
	k.strategy = starting
	k.client = func(c Clients, namespace string) Objects {
		objects := typed(c.Typed.BatchV1().CronJobs(namespace))
		objects.unrecorded = c.Unrecorded
		return startedCronJobs{objects, c.Typed.BatchV1().Jobs(namespace)}
	}
	k.read = func(obj runtime.Object) (parts, bool) {
		p, ok := cronJobs.read(obj)
		if cronJob, is := obj.(*batchv1.CronJob); ok && is {
			p.starts, p.Deaf = true, cronJob.DeletionTimestamp != nil
			p.Suspended = cronJob.Spec.Suspend != nil && *cronJob.Spec.Suspend
			p.progress.Message = "a job was started with the new content"
		}
		return p, ok
	}
	return k
}

// startedCronJobs starts a Job for each roll of a CronJob.
type startedCronJobs struct {
	typedObjects[*batchv1.CronJob, *batchv1.CronJobList, batchv1.CronJob]
	jobs clientbatchv1.JobInterface
}

// Patch starts the Job before it writes the record. If the patch is sent again because its result is unknown, the Job already exists.
func (o startedCronJobs) Patch(ctx context.Context, name string, p Patch) (runtime.Object, error) {
	if p.Revision == "" {
		return o.send(ctx, name, p)
	}
	// Use a dry run first, so that no Job is started for a patch that would not be applied.
	cronJob, err := o.send(ctx, name, p, metav1.DryRunAll)
	unrecorded := errors.Is(err, ErrUnrecorded)
	switch {
	case err != nil && !unrecorded:
		return nil, err
	case cronJob.Annotations[annotationRevision] != p.Revision:
		return cronJob, err
	}
	job := jobOf(cronJob, p.subject)
	if unrecorded {
		// The record goes on the Job, where another leader with its own stream finds it.
		for _, name := range []string{annotationRolled, annotationRolledNow} {
			if text, ok := cronJob.Annotations[name]; ok {
				metav1.SetMetaDataAnnotation(&job.ObjectMeta, name, text)
			}
		}
	}
	if startErr := o.start(ctx, job, cronJob); startErr != nil {
		return nil, startErr
	}
	if unrecorded {
		return cronJob, err
	}
	return o.record(ctx, name, p, cronJob)
}

// record writes the changes that a Job was started for. It retries until the context is done, because a later attempt at the whole patch would start
// another Job if this one was deleted meanwhile. A lasting refusal counts as a missing permission: the error wraps ErrUnrecorded.
func (o startedCronJobs) record(ctx context.Context, name string, p Patch, tried *batchv1.CronJob) (runtime.Object, error) {
	for delays := kube.PatchBackoff(); ; {
		cronJob, err := o.send(ctx, name, p)
		if err == nil || kube.HasChanged(err) || apierrors.IsNotFound(err) {
			return cronJob, err
		}
		refused := fmt.Errorf("%w: %w", ErrUnrecorded, err)
		if kube.IsDenied(err) || !kube.Sleep(ctx, delays.Step()) {
			return tried, refused
		}
	}
}

// start creates a Job of a CronJob unless it exists. The Job's name identifies the changes.
func (o startedCronJobs) start(ctx context.Context, job *batchv1.Job, cronJob *batchv1.CronJob) error {
	_, err := o.jobs.Create(ctx, job, metav1.CreateOptions{FieldManager: FieldManager})
	switch {
	case o.unrecorded && kube.IsMissingRight(err, "create"):
		return fmt.Errorf("%w: %w", ErrUnstarted, err)
	case !apierrors.IsAlreadyExists(err):
		return wrapJob("creating", job.Name, err)
	}
	found, getErr := o.jobs.Get(ctx, job.Name, metav1.GetOptions{})
	if getErr != nil {
		return wrapJob("reading", job.Name, getErr)
	}
	if metav1.IsControlledBy(found, cronJob) {
		return nil
	}
	return nameTaken(job.Name, "the job of cronjob "+cronJob.Name+" for this change is started")
}

// nameTaken returns an error about a Job whose name is needed. Then says what happens once the name is free.
func nameTaken(name, then string) error {
	return fmt.Errorf("%w: delete job %s, or create it under another name, so that %s", ErrNameTaken, name, then)
}

// wrapJob adds the operation on a Job to an error. It returns nil if err is nil.
func wrapJob(doing, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s job %s: %w", doing, name, err)
	}
	return nil
}

// jobOf returns the Job of a CronJob to start for changes, like the one that "kubectl create job --from" creates.
func jobOf(cronJob *batchv1.CronJob, subject string) *batchv1.Job {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: startedName(cronJob, subject), Namespace: cronJob.Namespace, Labels: template.Labels, Annotations: template.Annotations,
			// As with kubectl, it does not block the deletion of the CronJob, which might need another permission.
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: cronJobs.APIVersion, Kind: cronJobs.Title, Name: cronJob.Name, UID: cronJob.UID, Controller: new(true),
			}},
		},
		Spec: template.Spec,
	}
	copyMark(&job.ObjectMeta, cronJob.Annotations)
	copyMark(&job.Spec.Template.ObjectMeta, cronJob.Annotations)
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, annotationInstantiate, "manual")
	return job
}

// copyMark copies the annotations of a roll.
func copyMark(meta *metav1.ObjectMeta, annotations map[string]string) {
	for _, name := range []string{annotationRevision, events.AnnotationCause, events.AnnotationTraceparent} {
		delete(meta.Annotations, name)
		if text, ok := annotations[name]; ok {
			metav1.SetMetaDataAnnotation(meta, name, text)
		}
	}
}

// startedName returns the name of the Job to start for changes. It does not depend on the record of the CronJob, so that every client that starts it
// uses the same name. A CronJob's name has at most 52 characters, and a Job's name 63.
func startedName(cronJob *batchv1.CronJob, subject string) string {
	return cronJob.Name + "-" + shortHash(string(cronJob.UID)+"/"+subject, 5)
}
