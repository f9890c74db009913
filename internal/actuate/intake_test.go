package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAChangeThatNeedsNothingIsToldAtOnce(t *testing.T) {
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid"}}
	})
	l := loopOf(t, testOptions(), w)
	event := eventOf(changeOf(nil))
	l.intake.consider(t.Context(), event, w, nil)
	if event.open != 0 || len(l.gathering.byKey) != 0 {
		t.Errorf("%d workloads are open, %d wait", event.open, len(l.gathering.byKey))
	}
	if len(l.outbox.waiting) != 1 {
		t.Fatalf("%d outcomes are to be published, want one", len(l.outbox.waiting))
	}
	if outcome := l.outbox.waiting[0].outcome; outcome.Verb != events.VerbSkipped || outcome.Reason != plan.SameContent.String() {
		t.Errorf("the outcome is %s, %s", outcome.Verb, outcome.Reason)
	}
}

func TestNothingIsConcludedWhileAPatchIsUnderWay(t *testing.T) {
	// By its record the workload has this content. But the patch under way is about to write another record.
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "80", UID: "uid"}}
	})
	l := loopOf(t, testOptions(), w)
	l.patcher.rolls[w.Key()] = &roll{workload: w}
	event := eventOf(changeOf(nil))
	l.intake.consider(t.Context(), event, w, nil)
	if event.open != 1 || l.gathering.byKey[w.Key()] == nil {
		t.Errorf("%d workloads are open, want the change to wait for the patch", event.open)
	}
}
