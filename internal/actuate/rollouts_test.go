package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAPatchWhoseAnswerWasLostIsFollowed(t *testing.T) {
	b := newRevertBed(t)
	b.loses = true
	b.change()
	if got := b.outcomes(); len(got) != 0 {
		t.Fatalf("got %+v before it is known that the patch was made", got)
	}
	b.loses = false
	b.intake.index.observe(b.read(), true)
	b.act()
	got := b.outcomes()
	if len(got) == 0 || got[0].Verb != events.VerbStarted || got[0].Revision != b.read().Revision {
		t.Errorf("got %+v, want the start of the rollout", got)
	}
	if !b.rollouts.following.follows(b.read().Key()) {
		t.Error("it is not followed")
	}
}

func TestARolloutThatNoOutcomeIsAboutIsFound(t *testing.T) {
	rolled := func(state workload.State, name string) *workload.Workload {
		return workloadOf(t, "auto", wholeDB, named(name, func(w *workload.Workload) {
			w.Revision, w.Generation, w.Progress = "r1", 2, workload.Progress{State: state, Pods: 1}
			w.Rolled = map[string]workload.RolledFor{
				"configmap/app": {Fingerprint: fp("a"), Version: "90", UID: "u"}, "secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"},
			}
		}))
	}
	progressing, known := rolled(workload.Progressing, "progressing"), rolled(workload.Progressing, "known")
	l := loopOf(t, testOptions(), progressing, known, rolled(workload.Complete, "complete"), workloadOf(t, "auto", wholeDB, nil))
	l.rollouts.following.resume(t.Context(), rolledOut(known, "r1", 2))
	for range 2 {
		l.rollouts.find(t.Context())
	}
	if len(l.outbox.waiting) != 1 {
		t.Fatalf("%d outcomes are reported, want 1", len(l.outbox.waiting))
	}
	got := l.outbox.waiting[0].outcome
	if got.Verb != events.VerbStarted || got.Workload != progressing.ID || len(got.Sources) != 1 || got.Sources[0].Source != "secret/db" {
		t.Errorf("got %+v, want the start of a rollout for the newest change", got)
	}
	if _, err := got.Event(); err != nil {
		t.Errorf("it cannot be published: %v", err)
	}
	if !l.rollouts.following.follows(progressing.Key()) {
		t.Error("it is not followed")
	}
}
