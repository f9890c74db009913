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
	"github.com/keyturn/keyturn/tests/testkit"
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
		Changes: []Change{{Source: db}},
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
	other := events.Source{Kind: events.KindSecret, Name: "other"}
	cronJob.Spec.JobTemplate.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{readsAll(db), readsAll(other)}
	return cronJob
}

// sendTo sends the patch of a write to the workload that is read from an object.
func sendTo(ctx context.Context, t *testing.T, k Kind, obj runtime.Object, clients Clients, write Write) (*Workload, error) {
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
	testkit.Must(t, err)
	return list.Items
}

func TestAJobIsStartedOnceWithoutARecordWhereThatIsForbidden(t *testing.T) {
	client := fake.NewClientset(waitingCronJob())
	withoutRight(client, "patch", "cronjobs")
	clients := Clients{Typed: client, Unrecorded: true}
	for range 2 {
		after, err := sendTo(t.Context(), t, StartedCronJob(), waitingCronJob(), clients, dbChange("5"))
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
	testkit.Must(t, client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), other, "shop"))
	if _, err := sendTo(t.Context(), t, StartedCronJob(), other, clients, dbChange("5")); !errors.Is(err, ErrUnrecorded) {
		t.Fatal(err)
	}
	if jobs := jobsOf(t, client); len(jobs) != 1 {
		t.Errorf("got %d Jobs, want one for one change", len(jobs))
	}
	if _, err := sendTo(t.Context(), t, StartedCronJob(), other, clients, dbChange("6")); !errors.Is(err, ErrUnrecorded) || len(jobsOf(t, client)) != 2 {
		t.Errorf("got %d Jobs and %v, want another one for another change", len(jobsOf(t, client)), err)
	}
	if _, err := sendTo(t.Context(), t, StartedCronJob(), waitingCronJob(), clients, dbChange("7")); !kube.HasChanged(err) || len(jobsOf(t, client)) != 2 {
		t.Errorf("got %v, want no Job for a record that is no longer there", err)
	}
}

func TestNoJobIsStartedWithoutTheRightToCreateOne(t *testing.T) {
	client := fake.NewClientset(waitingCronJob())
	withoutRight(client, "patch", "cronjobs")
	withoutRight(client, "create", "jobs")
	if _, err := sendTo(t.Context(), t, StartedCronJob(), waitingCronJob(), Clients{Typed: client, Unrecorded: true}, dbChange("5")); !errors.Is(err, ErrUnstarted) {
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
		if _, err := sendTo(t.Context(), t, test.kind, test.obj, Clients{Typed: client}, dbChange("5")); !apierrors.IsForbidden(err) || errors.Is(err, ErrUnrecorded) {
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
	after, err := sendTo(t.Context(), t, Job(), before, Clients{Typed: client, Unrecorded: true}, dbChange("5"))
	testkit.Must(t, err)
	if after.Rolled["secret/db"].Version != "5" || after.ID.UID == "u" {
		t.Errorf("got the record %v and the UID %s, want another Job with the record", after.Rolled, after.ID.UID)
	}
	if jobs := jobsOf(t, client); len(jobs) != 1 || jobs[0].Name != "import" {
		t.Errorf("got %v, want the Job only", jobs)
	}
}

// reportCompleted is the outcome of a roll of the CronJob.
var reportCompleted = events.Outcome{
	Verb: events.VerbCompleted, Revision: "r", Workload: events.Workload{Kind: "cronjob", Namespace: "shop", Name: "report", UID: "u"},
	Sources: []events.OutcomeSource{{Source: "secret/db", Fingerprint: fp("a"), ResourceVersion: "5", Event: "s/5"}},
}

func TestWhatCannotBeRecordedIsKept(t *testing.T) {
	read := func(cronJob *batchv1.CronJob) *Workload { return readAs(t, StartedCronJob(), cronJob, Reading{}) }
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
	last := reportCompleted
	told := read(waitingCronJob()).KeepingStart(last)
	if told == nil || told.Revision != "r" || told.Rolled["secret/db"] != (RolledFor{Fingerprint: fp("a"), Version: "5", UID: "s"}) {
		t.Errorf("it does not keep what was started: %v", told)
	}
	owed := waitingCronJob()
	owed.Annotations[annotationRolled] = `{"secret/db":"` + Owed(RolledFor{Fingerprint: fp("b"), UID: "s"}).String() + `"}`
	marked, failed := last, last
	marked.Sources = []events.OutcomeSource{{Source: "secret/*", Fingerprint: lowWater, ResourceVersion: "9", Event: "-/9"}}
	failed.Verb = events.VerbFailed
	for _, test := range []struct {
		name    string
		cronJob *batchv1.CronJob
		last    events.Outcome
	}{
		{"it says itself that it was rolled for a later change", withRecord("6"), last},
		{"it is still to be rolled for a later change", owed, last},
		{"it is another CronJob of the name", other, last},
		{"the outcome says that a record had no room for something, which none does", waitingCronJob(), marked},
		{"it failed", waitingCronJob(), failed},
	} {
		if read(test.cronJob).KeepingStart(test.last) != nil {
			t.Errorf("%s, and keeps what was started", test.name)
		}
	}
}

// A mark in memory counts whatever its version is. So what the token of the actuator can write does not become one: on the workload, or on a Job.
func TestNoForgedMarkIsKept(t *testing.T) {
	const seen, forged = "secret/*", "configmap/*"
	marks := `{"` + seen + `":"-@6/-","` + forged + `":"-@99/-","openbao/bao/*":"-@99/bao"}`
	cronJob := waitingCronJob()
	cronJob.Annotations[annotationRolled] = marks
	job := startedJob("u", marks, "r1", 1)
	job.ResourceVersion = "7"
	starts := make(map[string]Starts)
	addStart(starts, &job)
	for name, kept := range map[string]*Workload{
		"with an outcome": readAs(t, StartedCronJob(), cronJob, Reading{}).KeepingStart(reportCompleted),
		"from its Jobs":   readAs(t, StartedCronJob(), waitingCronJob(), Reading{}).KeepingStarts(starts["u"]),
	} {
		if kept == nil || !kept.IsUnwritten() {
			t.Fatalf("%s: it keeps nothing", name)
		}
		_, hasSeen := kept.Rolled[seen]
		_, hasForged := kept.Rolled[forged]
		_, hasStore := kept.Rolled["openbao/bao/*"]
		if !hasSeen || hasForged || !hasStore {
			t.Errorf("%s: got %v, want the marks of Secrets and of the store", name, kept.Rolled)
		}
	}
}
