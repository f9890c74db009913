package workload

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes/fake"
)

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
