package workload

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
)

// goneInterval is the interval between checks for the end of a deleted Job.
const goneInterval = 100 * time.Millisecond

// recreatedJobs recreates Jobs under the same name. A shadow, which is a suspended Job, keeps the manifest from before the deletion of the old Job
// until the new one exists, so that nothing is lost if the actuator is killed.
type recreatedJobs struct {
	typedObjects[*batchv1.Job, *batchv1.JobList, batchv1.Job]
	jobs clientbatchv1.JobInterface
}

// Patch recreates a Job, or only writes its record.
func (o recreatedJobs) Patch(ctx context.Context, name string, p Patch) (runtime.Object, error) {
	switch {
	case p.restores != "":
		return o.restore(ctx, name, p.restores, p.abandons)
	case p.Revision == "":
		return o.send(ctx, name, p)
	}
	// The result of a dry run is the manifest, if the Job still passes the tests. So the new Job has the record without another patch.
	job, err := o.send(ctx, name, p, metav1.DryRunAll)
	switch {
	case err != nil && !errors.Is(err, ErrUnrecorded):
		return nil, err
	case !isRecreatable(&job.ObjectMeta):
		return nil, notOurs(name)
	case job.Annotations[annotationRevision] != p.Revision:
		return job, nil
	}
	shadow, err := o.keep(ctx, shadowOf(job))
	if err != nil {
		return nil, err
	}
	if err := o.remove(ctx, name, job.UID); err != nil {
		return nil, err
	}
	return o.create(ctx, shadow)
}

// notOurs returns an error for a Job of that name that is not the one to recreate.
func notOurs(name string) error { return apierrors.NewNotFound(batchv1.Resource("jobs"), name) }

// keep creates a shadow. It replaces the shadow of an earlier attempt, which another actuator may be about to remove. The earlier one is removed only
// after the new one exists under the other name, because the Job may already be gone: the API server may carry out a deletion after an error.
func (o recreatedJobs) keep(ctx context.Context, shadow *batchv1.Job) (*batchv1.Job, error) {
	kept, err := o.jobs.Create(ctx, shadow, metav1.CreateOptions{FieldManager: FieldManager})
	if !apierrors.IsAlreadyExists(err) {
		return kept, wrapJob("creating", shadow.Name, err)
	}
	earlier, err := o.earlier(ctx, shadow)
	if err != nil {
		return nil, err
	}
	other := shadow.DeepCopy()
	job, _, _ := recreatedBy(&shadow.ObjectMeta)
	other.Name = otherShadowName(job)
	if left, err := o.earlier(ctx, other); err == nil {
		if err := o.remove(ctx, left.Name, left.UID); err != nil {
			return nil, err
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, err
	}
	if kept, err = o.jobs.Create(ctx, other, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return nil, wrapJob("creating", other.Name, err)
	}
	return kept, o.remove(ctx, earlier.Name, earlier.UID)
}

// earlier returns the shadow of an earlier attempt with the same name.
func (o recreatedJobs) earlier(ctx context.Context, shadow *batchv1.Job) (*batchv1.Job, error) {
	job, _, _ := recreatedBy(&shadow.ObjectMeta)
	kept, err := o.jobs.Get(ctx, shadow.Name, metav1.GetOptions{})
	if err != nil {
		return nil, wrapJob("reading", shadow.Name, err)
	}
	if of, _, is := recreatedBy(&kept.ObjectMeta); !is || of != job {
		return nil, nameTaken(kept.Name, "the manifest of job "+job+" is kept")
	}
	return kept, nil
}

// remove deletes a Job and its pods if it still has the UID.
func (o recreatedJobs) remove(ctx context.Context, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := o.jobs.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return wrapJob("deleting", name, err)
}

// create waits until the name is free, creates the Job from its shadow, and removes the shadow. If others have created the Job, that one stays.
func (o recreatedJobs) create(ctx context.Context, shadow *batchv1.Job) (*batchv1.Job, error) {
	job := recreatedOf(shadow)
	var made *batchv1.Job
	err := wait.PollUntilContextCancel(ctx, goneInterval, true, func(ctx context.Context) (bool, error) {
		var err error
		if made, err = o.jobs.Create(ctx, job, metav1.CreateOptions{FieldManager: FieldManager}); !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		if made, err = o.jobs.Get(ctx, job.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return false, nil
		}
		_, old, _ := recreatedBy(&shadow.ObjectMeta)
		return err == nil && made.UID != old, err
	})
	if err != nil {
		return nil, wrapJob("creating", job.Name, err)
	}
	if err := o.remove(ctx, shadow.Name, shadow.UID); err != nil {
		return nil, err
	}
	if made.Annotations[annotationRevision] != job.Annotations[annotationRevision] {
		return nil, notOurs(job.Name)
	}
	return made, nil
}

// restore completes the attempt that left a shadow with the UID. If the Job was not deleted, the shadow stays unless abandons is true.
func (o recreatedJobs) restore(ctx context.Context, name string, kept types.UID, abandons bool) (runtime.Object, error) {
	shadow, err := o.jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, wrapJob("reading", name, err)
	}
	of, uid, is := recreatedBy(&shadow.ObjectMeta)
	if !is || shadow.UID != kept {
		return nil, notOurs(name)
	}
	job, err := o.jobs.Get(ctx, of, metav1.GetOptions{})
	switch {
	case err == nil && job.UID == uid && job.DeletionTimestamp == nil && !abandons:
		return job, nil
	case err == nil && (job.UID != uid || job.DeletionTimestamp == nil):
		return job, o.remove(ctx, name, shadow.UID)
	case err != nil && !apierrors.IsNotFound(err):
		return nil, wrapJob("reading", of, err)
	}
	return o.create(ctx, shadow)
}
