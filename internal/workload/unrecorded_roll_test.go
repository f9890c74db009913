package workload

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/keyturn/keyturn/internal/events"
)

// askedCronJob is a CronJob that is to be rolled now, and then not for an hour.
func askedCronJob() *batchv1.CronJob {
	cronJob := waitingCronJob()
	cronJob.Annotations[AnnotationRollNow], cronJob.Annotations[AnnotationMinInterval] = "1", "1h"
	return cronJob
}

// If nothing may be written on the CronJob, its Job or its outcome says that a roll was asked for, and when.
func TestARollThatIsNotRecordedCountsAfterARestart(t *testing.T) {
	client := fake.NewClientset(askedCronJob())
	withoutRight(client, "patch", "cronjobs")
	// The error says that the roll is not recorded.
	_, _ = sendTo(t, StartedCronJob(), askedCronJob(), Clients{Typed: client, Unrecorded: true}, dbChange("5"))
	job := jobsOf(t, client)[0]
	if got := job.Annotations[annotationRolledNow]; got != "1" {
		t.Fatalf("the Job says of %s: %q", AnnotationRollNow, got)
	}
	w, _ := Read(StartedCronJob(), askedCronJob(), Reading{})
	if !w.RollsNow() {
		t.Fatal("it is not to be rolled now")
	}
	at := time.Unix(1_000_000, 0)
	job.CreationTimestamp.Time = at
	found := make(map[string]Starts)
	addStart(found, &job)
	kept, ok := w.KeepingStarts(found["u"])
	if !ok || kept.RollsNow() {
		t.Error("the Job does not say that it was rolled so")
	}
	if end, waits := kept.NextRoll(at.Add(time.Minute)); !waits || !end.Equal(at.Add(time.Hour)) {
		t.Errorf("it may be rolled again at %s (%t)", end, waits)
	}
	started := events.Outcome{
		Verb: events.VerbStarted, Workload: w.ID, Revision: "r2", StartedAt: at,
		Sources: []events.OutcomeSource{{Source: "secret/db", Fingerprint: fp("a"), ResourceVersion: "5", Event: "u/5"}},
	}
	kept, ok = w.KeepingStart(started)
	if !ok {
		t.Fatal("the outcome is not kept")
	}
	if end, waits := kept.NextRoll(at.Add(time.Minute)); !waits || !end.Equal(at.Add(time.Hour)) {
		t.Errorf("as the outcome says, it may be rolled again at %s (%t)", end, waits)
	}
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
		"after another roll": dbChange("6"),
		"after a note of what is owed": {Rolled: map[string]RolledFor{
			"secret/other": Owed(RolledFor{Fingerprint: fp("b"), Version: "7", UID: "u"}),
		}},
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
			after, ok := seen(nil).KeepingStarts(found["u"])
			if !ok || after.RollsNow() {
				t.Error("after a restart the same value counts again")
			}
		})
	}
}
