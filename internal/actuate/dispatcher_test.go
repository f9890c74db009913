package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestAWorkloadThatIsHeldForTwoReasonsIsReportedOnce(t *testing.T) {
	both := func(w *workload.Workload) {
		w.Refs = []workload.Reference{wholeDB, {Kind: events.KindConfigMap, Name: "app"}}
	}
	w := workloadOf(t, "auto", wholeDB, func(w *workload.Workload) { both(w); w.Wave = 1 })
	failed := workloadOf(t, "auto", wholeDB, named("failed", func(w *workload.Workload) {
		w.Rolled = map[string]workload.RolledFor{"secret/db": {Fingerprint: fp("b"), Version: "100", UID: "uid"}}
	}))
	lower := workloadOf(t, "auto", wholeDB, named("lower", both))
	l := loopOf(t, testOptions(), w, failed, lower)
	l.rollouts.peers.add(failed.Key())
	appChange := changeOf(func(c *events.Change) { c.Source = app })
	l.gathering.pend(lower, appChange)
	p := pendingOf(w, changeOf(nil), appChange)
	for _, c := range p.changes {
		c.events = []*inFlightEvent{eventOf(c.change)}
	}
	for range 50 {
		l.dispatcher.act(t.Context(), p, w)
	}
	if len(l.outbox.waiting) != 1 {
		t.Errorf("%d outcomes say that it is held, want 1", len(l.outbox.waiting))
	}
}
