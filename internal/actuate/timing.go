package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// timing knows when a workload may be rolled by the choices of people. Nobody waits for a workload that may not be rolled.
type timing struct {
	index      *inventory.Index
	namespaces *inventory.Namespaces
	debounce   *debounce
	now        func() time.Time
}

// stop returns why a workload may not be rolled now. The reason is plan.None if it may.
func (t *timing) stop(w *workload.Workload) obstacle {
	now := t.now()
	since := now // A pause would begin with a change that comes now.
	if p := t.debounce.byKey[w.Key()]; p != nil && !p.rollsSince.IsZero() {
		since = p.rollsSince
	}
	gate := plan.GateOf(w.In(t.namespaces.Get(w.ID.Namespace)), since, now)
	return obstacle{reason: gate.Reason, end: gate.End, said: gate.Said, soon: gate.Soon, begins: gate.Begins}
}

// mayGo returns when a workload that may not be rolled now may be rolled again, or zero if that does not depend on time.
func (t *timing) mayGo(w *workload.Workload) time.Time {
	why := t.stop(w)
	switch {
	case why.soon:
		return time.Time{}
	case why.reason == plan.WindowClosed && !why.end.IsZero():
		return w.In(t.namespaces.Get(w.ID.Namespace)).NextOpening(t.now())
	}
	return why.end
}

// stops reports whether a workload may not be rolled now, nor in a moment.
func (t *timing) stops(key workload.Key) bool {
	w := t.index.Get(key)
	switch {
	case w == nil:
		return false
	case w.Unserved:
		return true
	}
	why := t.stop(w)
	return why.reason != plan.None && !why.soon
}
