package tests

import (
	"context"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// runJob creates a Job that reads a Secret.
func (r *rig) runJob(name, secret string, owners ...metav1.OwnerReference) *batchv1.Job {
	r.Helper()
	template := programs.PodTemplate(map[string]string{"app": name})
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	programs.ReadSecret(&template, secret)
	job, err := r.client.BatchV1().Jobs(r.namespace).Create(r.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"keyturn.dev/roll-on": "auto"}, OwnerReferences: owners,
		},
		Spec: batchv1.JobSpec{Template: template},
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
	return job
}

// job returns a Job, nil if there is none.
func (r *rig) job(name string) *batchv1.Job {
	r.Helper()
	job, err := r.client.BatchV1().Jobs(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	testkit.Must(r, err)
	return job
}

// runOwnedJob is runJob for a Job of a CronJob, whose name is that of the Job with -schedule behind it.
func (r *rig) runOwnedJob(name, secret string) *batchv1.Job {
	r.Helper()
	r.schedule(name+"-schedule", "none", true)
	yes, owner := true, r.cronJob(name+"-schedule")
	return r.runJob(name, secret, metav1.OwnerReference{
		APIVersion: "batch/v1", Kind: "CronJob", Name: owner.Name, UID: owner.UID, Controller: &yes,
	})
}

// makesAnew is for the Job import and for one of a CronJob, which both read the Secret import.
func (r *rig) makesAnew(before, owned *batchv1.Job) {
	r.Helper()
	r.secret("import", map[string]string{"password": "two"})

	completed := r.outcomeOf("import", events.VerbCompleted)
	after := r.job("import")
	if after == nil || after.UID == before.UID || string(after.UID) != completed.Workload.UID {
		r.Fatalf("the Job is %v, want another one than %s, which the outcome names", after, before.UID)
	}
	if got := after.Spec.Template.Annotations["keyturn.dev/revision"]; got != completed.Revision {
		r.Errorf("revision of its pods: got %q, want %q", got, completed.Revision)
	}
	r.eventually("its pod is made", func(ctx context.Context) bool {
		pods, err := r.client.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(after.UID)})
		return err == nil && len(pods.Items) == 1
	})
	if r.job("import-keyturn") != nil {
		r.Error("the shadow is still there")
	}
	if got := r.job("owned"); got == nil || got.UID != owned.UID {
		r.Errorf("the Job of a CronJob is %v, want it left alone", got)
	}
	r.secret("import", map[string]string{"password": "three"})
	r.eventually("it is made anew for the next change", func(context.Context) bool {
		job := r.job("import")
		return job != nil && job.UID != after.UID
	})
}

// makesWhatWasDeleted is for the Job export.
func (r *rig) makesWhatWasDeleted(before *batchv1.Job) {
	r.Helper()
	// While it has a finalizer, the Job that was deleted is in the way of the new one.
	finalize := func(finalizers string) {
		patch := []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)
		if _, err := r.client.BatchV1().Jobs(r.namespace).Patch(r.Context(), "export", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	finalize(`["example.com/hold"]`)
	r.secret("export", map[string]string{"password": "two"})
	r.eventually("the Job is deleted", func(context.Context) bool { return r.job("export").DeletionTimestamp != nil })
	r.actuator.Kill()
	shadow := r.job("export-keyturn")
	if shadow == nil || !strings.HasPrefix(shadow.Annotations["keyturn.dev/recreates"], "export/") {
		r.Fatalf("nothing keeps the manifest of the Job: %v", shadow)
	}
	finalize("null")
	r.eventually("the Job is gone", func(context.Context) bool { return r.job("export") == nil })
	r.startActuator()
	r.eventually("the Job is there again", func(context.Context) bool { return r.job("export") != nil })
	after := r.job("export")
	if after.UID == before.UID || after.Spec.Suspend != nil && *after.Spec.Suspend || after.Annotations[recordAnnotation] == "" {
		r.Errorf("it is %v, want another one with the record of the change", after)
	}
	r.eventually("the shadow is gone", func(context.Context) bool { return r.job("export-keyturn") == nil })
	if got := r.outcomeOf("export", events.VerbCompleted).Workload.UID; got != string(after.UID) {
		r.Errorf("the outcome is of the Job %s, want %s", got, after.UID)
	}
}
