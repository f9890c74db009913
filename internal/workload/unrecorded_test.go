package workload

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// withoutRight makes a client respond like the API server if permission for a verb is missing.
func withoutRight(client *fake.Clientset, verb, resource string) {
	client.PrependReactor(verb, resource, func(k8stesting.Action) (bool, runtime.Object, error) {
		why := fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", "u", verb, resource, "batch", "shop")
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: resource}, "it", why)
	})
}

// dbChange is what a roll for a change of the Secret db writes, with the records of other sources.
func dbChange(version string, others ...string) Write {
	w := Write{
		Rolls: true, Cause: "secret/db", Rolled: map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: version, UID: "u"}},
		Changes: []Change{{Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}}},
	}
	for _, other := range others {
		w.Rolled[other] = RolledFor{Fingerprint: fp("b"), Version: "1", UID: "u"}
	}
	return w
}

// waitingCronJob is the CronJob before its roll.
func waitingCronJob() *batchv1.CronJob {
	cronJob := reportCronJob()
	cronJob.Annotations = rollOn("auto")
	cronJob.Spec.JobTemplate.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "other"}}},
	}
	return cronJob
}

// sendTo sends the patch of a write to the workload that is read from an object.
func sendTo(t *testing.T, k Kind, obj runtime.Object, clients Clients, write Write) (*Workload, error) {
	t.Helper()
	return sendWithin(t.Context(), t, k, obj, clients, write)
}

// sendWithin is sendTo with a context.
func sendWithin(ctx context.Context, t *testing.T, k Kind, obj runtime.Object, clients Clients, write Write) (*Workload, error) {
	t.Helper()
	w := readAs(t, k, obj, Reading{})
	patch := patchFor(t, k, w, write)
	after, err := k.Objects(clients, "shop").Patch(ctx, w.ID.Name, patch)
	if err != nil && !errors.Is(err, ErrUnrecorded) {
		return nil, err
	}
	patched, ok := Read(k, after, Reading{})
	if !ok {
		t.Fatalf("the answer is %T", after)
	}
	return patched, err
}

func jobsOf(t *testing.T, client *fake.Clientset) []batchv1.Job {
	t.Helper()
	list, err := client.BatchV1().Jobs("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestAJobIsStartedOnceWithoutARecordWhereThatIsForbidden(t *testing.T) {
	client := fake.NewClientset(waitingCronJob())
	withoutRight(client, "patch", "cronjobs")
	clients := Clients{Typed: client, Unrecorded: true}
	for range 2 {
		after, err := sendTo(t, StartedCronJob(), waitingCronJob(), clients, dbChange("5"))
		if !errors.Is(err, ErrUnrecorded) || !kube.IsMissingRight(err, "patch") {
			t.Fatalf("got %v, want what is missing", err)
		}
		if after.Rolled["secret/db"].Version != "5" || after.Revision == "" || after.Version != "7" {
			t.Errorf("got the record %v, want the CronJob as it would be", after.Rolled)
		}
	}
	// The record differs, as after a restart, but the change is the same.
	other := waitingCronJob()
	other.Annotations[annotationRolled] = `{"secret/other":"` + fp("b") + `@1/u"}`
	if err := client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), other, "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := sendTo(t, StartedCronJob(), other, clients, dbChange("5")); !errors.Is(err, ErrUnrecorded) {
		t.Fatal(err)
	}
	if jobs := jobsOf(t, client); len(jobs) != 1 {
		t.Errorf("got %d Jobs, want one for one change", len(jobs))
	}
	if _, err := sendTo(t, StartedCronJob(), other, clients, dbChange("6")); !errors.Is(err, ErrUnrecorded) || len(jobsOf(t, client)) != 2 {
		t.Errorf("got %d Jobs and %v, want another one for another change", len(jobsOf(t, client)), err)
	}
	if _, err := sendTo(t, StartedCronJob(), waitingCronJob(), clients, dbChange("7")); !kube.HasChanged(err) || len(jobsOf(t, client)) != 2 {
		t.Errorf("got %v, want no Job for a record that is no longer there", err)
	}
}

func TestNoJobIsStartedWithoutTheRightToCreateOne(t *testing.T) {
	client := fake.NewClientset(waitingCronJob())
	withoutRight(client, "patch", "cronjobs")
	withoutRight(client, "create", "jobs")
	if _, err := sendTo(t, StartedCronJob(), waitingCronJob(), Clients{Typed: client, Unrecorded: true}, dbChange("5")); !errors.Is(err, ErrUnstarted) {
		t.Errorf("got %v, want that no job is started", err)
	}
}

func TestAMissingRightIsWaitedForUnlessItIsThatOfReloader(t *testing.T) {
	client := fake.NewClientset(waitingCronJob(), importJob(nil))
	withoutRight(client, "patch", "*")
	for _, test := range []struct {
		kind Kind
		obj  runtime.Object
	}{{StartedCronJob(), waitingCronJob()}, {Job(), importJob(nil)}} {
		if _, err := sendTo(t, test.kind, test.obj, Clients{Typed: client}, dbChange("5")); !apierrors.IsForbidden(err) || errors.Is(err, ErrUnrecorded) {
			t.Errorf("%s: got %v, want the refusal", test.kind.Name, err)
		}
	}
	if jobs := jobsOf(t, client); len(jobs) != 1 || jobs[0].UID != "u" {
		t.Errorf("got %v, want nothing started or made anew", jobs)
	}
}

func TestAJobIsMadeAnewWithItsRecordWithoutThePermissionToPatch(t *testing.T) {
	before := importJob(func(j *batchv1.Job) { j.Annotations, j.Finalizers = rollOn("secret/db"), nil })
	client := fake.NewClientset(before)
	withoutRight(client, "patch", "jobs")
	after, err := sendTo(t, Job(), before, Clients{Typed: client, Unrecorded: true}, dbChange("5"))
	if err != nil {
		t.Fatal(err)
	}
	if after.Rolled["secret/db"].Version != "5" || after.ID.UID == "u" {
		t.Errorf("got the record %v and the UID %s, want another Job with the record", after.Rolled, after.ID.UID)
	}
	if jobs := jobsOf(t, client); len(jobs) != 1 || jobs[0].Name != "import" {
		t.Errorf("got %v, want the Job only", jobs)
	}
}

func TestWhatCannotBeRecordedIsKept(t *testing.T) {
	read := func(cronJob *batchv1.CronJob) *Workload {
		return readAs(t, StartedCronJob(), cronJob, Reading{})
	}
	withRecord := func(version string) *batchv1.CronJob {
		cronJob := waitingCronJob()
		cronJob.ResourceVersion = "9"
		cronJob.Annotations[annotationRolled] = `{"secret/db":"` + fp("a") + "@" + version + `/u"}`
		return cronJob
	}
	keeping := read(waitingCronJob()).Keeping(read(withRecord("5")))
	if keeping.Version != "7" || keeping.Rolled["secret/db"].Version != "5" {
		t.Errorf("it keeps %v", keeping.Rolled)
	}
	if later := read(waitingCronJob()).After(keeping, true); later.Rolled["secret/db"].Version != "5" {
		t.Errorf("a later state has %v, want what is kept", later.Rolled)
	}
	if again := read(waitingCronJob()).After(keeping, true).Keeping(read(withRecord("6"))).After(keeping, true); again.Rolled["secret/db"].Version != "6" {
		t.Errorf("it keeps %v, want the newest", again.Rolled)
	}
	other := waitingCronJob()
	other.UID = "other"
	if successor := read(other).After(keeping, true); len(successor.Rolled) > 0 {
		t.Errorf("another CronJob of the name has %v", successor.Rolled)
	}
	last := events.Outcome{
		Verb: events.VerbCompleted, Revision: "r", Workload: events.Workload{Kind: "cronjob", Namespace: "shop", Name: "report", UID: "u"},
		Sources: []events.OutcomeSource{{Source: "secret/db", Fingerprint: fp("a"), ResourceVersion: "5", Event: "s/5"}},
	}
	told := read(waitingCronJob()).KeepingStart(last)
	if told == nil || told.Revision != "r" || told.Rolled["secret/db"] != (RolledFor{Fingerprint: fp("a"), Version: "5", UID: "s"}) {
		t.Errorf("it does not keep what was started: %v", told)
	}
	if read(withRecord("6")).KeepingStart(last) != nil {
		t.Error("it says itself that it was rolled for a later change, and keeps something else")
	}
	owed := waitingCronJob()
	owed.Annotations[annotationRolled] = `{"secret/db":"` + Owed(RolledFor{Fingerprint: fp("b"), UID: "s"}).String() + `"}`
	if read(owed).KeepingStart(last) != nil {
		t.Error("it is still to be rolled for a later change, and keeps what was started")
	}
	if read(other).KeepingStart(last) != nil {
		t.Error("another CronJob of the name keeps what was started")
	}
	last.Verb = events.VerbFailed
	if read(waitingCronJob()).KeepingStart(last) != nil {
		t.Error("it keeps what failed")
	}
}
