package workload

import (
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
