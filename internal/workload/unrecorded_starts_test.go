package workload

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// startedJob is a Job with a record, of the CronJob with the given UID, created at the given second.
func startedJob(uid types.UID, record, revision string, second int64) batchv1.Job {
	job := jobOf(reportCronJob(), "s")
	job.OwnerReferences[0].UID, job.CreationTimestamp = uid, metav1.NewTime(time.Unix(second, 0))
	job.Annotations[annotationRolled], job.Annotations[annotationRevision] = record, revision
	return *job
}

func TestJobsSayWhatTheyWereStartedFor(t *testing.T) {
	at := func(version string) string { return fp("a") + "@" + version + "/u" }
	byHand := startedJob("u", "", "", 9)
	orphan := startedJob("u", `{"secret/db":"`+at("9")+`"}`, "r9", 9)
	orphan.OwnerReferences = nil
	ofAnother := startedJob("u", `{"secret/db":"`+at("9")+`"}`, "r9", 9)
	ofAnother.OwnerReferences[0].Kind = "Workflow"
	pages := [][]batchv1.Job{
		{startedJob("u", `{"secret/db":"`+at("7")+`","secret/other":"`+at(NoVersion)+`"}`, "r2", 2), byHand, startedJob("other", `{"secret/db":"`+at("3")+`"}`, "r", 1)},
		{startedJob("u", `{"secret/db":"`+at("5")+`","secret/other":"`+at("4")+`"}`, "r1", 1), orphan, ofAnother},
	}
	client := fake.NewClientset()
	client.PrependReactor("list", "jobs", func(k8stesting.Action) (bool, runtime.Object, error) {
		page := &batchv1.JobList{Items: pages[0]}
		if pages = pages[1:]; len(pages) > 0 {
			page.Continue = "more"
		}
		return true, page, nil
	})
	found, err := ReadStarts(t.Context(), Clients{Typed: client}, "shop")
	testkit.Must(t, err)
	if len(found) != 2 {
		t.Errorf("got %d CronJobs, want 2", len(found))
	}
	got := found["u"]
	want := map[string]RolledFor{
		"secret/db": {Fingerprint: fp("a"), Version: "7", UID: "u"}, "secret/other": {Fingerprint: fp("a"), Version: "4", UID: "u"},
	}
	if diff := cmp.Diff(want, got.Rolled); diff != "" || got.Revision != "r2" {
		t.Errorf("revision %s, record (-want +got):\n%s", got.Revision, diff)
	}
}

// askedCronJob is a CronJob that is to be rolled now, and then not for an hour.
func askedCronJob() *batchv1.CronJob {
	cronJob := waitingCronJob()
	cronJob.Annotations[AnnotationRollNow], cronJob.Annotations[AnnotationMinInterval] = "1", "1h"
	return cronJob
}

func sendKept(t *testing.T, w *Workload, clients Clients, write Write) *Workload {
	t.Helper()
	k := StartedCronJob()
	patch := patchFor(t, k, w, write)
	after, err := k.Objects(clients, "shop").Patch(t.Context(), w.ID.Name, patch)
	if !errors.Is(err, ErrUnrecorded) {
		t.Fatal(err)
	}
	patched, _ := Read(k, after, Reading{})
	return w.Keeping(patched)
}

func TestARollNowThatIsNotRecordedIsUsedUpForGood(t *testing.T) {
	for name, second := range map[string]Write{
		"after another roll":           dbChange("6"),
		"after a note of what is owed": {Rolled: map[string]RolledFor{"secret/other": Owed(RolledFor{Fingerprint: fp("b"), Version: "7", UID: "u"})}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(askedCronJob())
			withoutRight(client, "patch", "cronjobs")
			clients := Clients{Typed: client, Unrecorded: true}
			seen := func(earlier *Workload) *Workload {
				w, _ := Read(StartedCronJob(), askedCronJob(), Reading{})
				return w.After(earlier, true)
			}
			at := time.Unix(1_000_000, 0)
			first := dbChange("5")
			first.RolledAt = at
			w := seen(sendKept(t, seen(nil), clients, first))
			if w.RollsNow() {
				t.Fatal("the first roll does not use it up")
			}
			if _, waits := w.NextRoll(at.Add(time.Minute)); !waits {
				t.Fatal("no interval after the first roll")
			}
			if second.Rolls {
				second.RolledAt = at.Add(2 * time.Hour)
				at = second.RolledAt
			}
			w = seen(sendKept(t, w, clients, second))
			if w.RollsNow() {
				t.Error("the same value counts again")
			}
			if _, waits := w.NextRoll(at.Add(time.Minute)); !waits {
				t.Error("the interval is forgotten")
			}
			found := make(map[string]Starts)
			for _, job := range jobsOf(t, client) {
				job.CreationTimestamp.Time = time.Unix(2_000_000, 0)
				if job.Annotations[annotationRolledNow] != "" {
					job.CreationTimestamp.Time = time.Unix(1_000_000, 0)
				}
				addStart(found, &job)
			}
			if after := seen(nil).KeepingStarts(found["u"]); after == nil || after.RollsNow() {
				t.Error("after a restart the same value counts again")
			}
		})
	}
}
