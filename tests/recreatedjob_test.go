package tests

import (
	"context"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
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
	if err != nil {
		r.Fatal(err)
	}
	return job
}

// job returns a Job, nil if there is none.
func (r *rig) job(name string) *batchv1.Job {
	r.Helper()
	job, err := r.client.BatchV1().Jobs(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	return job
}

func TestAJobIsMadeAnewUnderItsName(t *testing.T) {
	r := newJobsRig(t, programs.Options{ActuatorArgs: []string{"--recreate-jobs", "--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	r.schedule("nightly", "other", true)
	before := r.runJob("import", "db")
	yes, nightly := true, r.cronJob("nightly")
	owned := r.runJob("owned", "db", metav1.OwnerReference{
		APIVersion: "batch/v1", Kind: "CronJob", Name: nightly.Name, UID: nightly.UID, Controller: &yes,
	})
	r.start()
	r.secret("db", map[string]string{"password": "two"})

	completed := r.outcomeOf("import", events.VerbCompleted)
	after := r.job("import")
	if after == nil || after.UID == before.UID || string(after.UID) != completed.Workload.UID {
		t.Fatalf("the Job is %v, want another one than %s, which the outcome names", after, before.UID)
	}
	if got := after.Spec.Template.Annotations["keyturn.dev/revision"]; got != completed.Revision {
		t.Errorf("revision of its pods: got %q, want %q", got, completed.Revision)
	}
	r.eventually("its pod is made", func(ctx context.Context) bool {
		pods, err := r.client.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(after.UID)})
		return err == nil && len(pods.Items) == 1
	})
	if r.job("import-keyturn") != nil {
		t.Error("the shadow is still there")
	}
	if got := r.job("owned"); got == nil || got.UID != owned.UID {
		t.Errorf("the Job of a CronJob is %v, want it left alone", got)
	}
	r.secret("db", map[string]string{"password": "three"})
	r.eventually("it is made anew for the next change", func(context.Context) bool {
		job := r.job("import")
		return job != nil && job.UID != after.UID
	})
}

func TestAJobThatWasDeletedByAnActuatorThatWasKilledIsMade(t *testing.T) {
	r := newJobsRig(t, programs.Options{ActuatorArgs: []string{"--recreate-jobs", "--settle", "50ms"}})
	r.secret("db", map[string]string{"password": "one"})
	before := r.runJob("import", "db")
	// While it has a finalizer, the Job that was deleted is in the way of the new one.
	finalize := func(finalizers string) {
		patch := []byte(`{"metadata":{"finalizers":` + finalizers + `}}`)
		if _, err := r.client.BatchV1().Jobs(r.namespace).Patch(t.Context(), "import", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalize(`["example.com/hold"]`)
	r.start()
	r.secret("db", map[string]string{"password": "two"})
	r.eventually("the Job is deleted", func(context.Context) bool { return r.job("import").DeletionTimestamp != nil })
	r.actuator.Kill()
	shadow := r.job("import-keyturn")
	if shadow == nil || !strings.HasPrefix(shadow.Annotations["keyturn.dev/recreates"], "import/") {
		t.Fatalf("nothing keeps the manifest of the Job: %v", shadow)
	}
	finalize("null")
	r.eventually("the Job is gone", func(context.Context) bool { return r.job("import") == nil })
	r.startActuator()
	r.eventually("the Job is there again", func(context.Context) bool { return r.job("import") != nil })
	after := r.job("import")
	if after.UID == before.UID || after.Spec.Suspend != nil && *after.Spec.Suspend || after.Annotations[recordAnnotation] == "" {
		t.Errorf("it is %v, want another one with the record of the change", after)
	}
	r.eventually("the shadow is gone", func(context.Context) bool { return r.job("import-keyturn") == nil })
	if got := r.outcomeOf("import", events.VerbCompleted).Workload.UID; got != string(after.UID) {
		t.Errorf("the outcome is of the Job %s, want %s", got, after.UID)
	}
}
