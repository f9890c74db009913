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
	gathering  *debounce
	now        func() time.Time
}

// stop returns why a workload may not be rolled now. The reason is plan.None if it may.
func (t *timing) stop(w *workload.Workload) obstacle {
	if w.RollsNow() {
		return obstacle{}
	}
	w = w.In(t.namespaces.Get(w.ID.Namespace))
	if w.Hold != "" {
		return obstacle{reason: plan.OnHold, said: w.Hold}
	}
	at, opens := w.Opening(t.now())
	if !opens {
		return obstacle{reason: plan.WindowClosed, said: w.Windows()}
	}
	opening := obstacle{reason: plan.WindowClosed, end: at, said: w.Windows()}
	if !w.IsOpen(t.now()) {
		return opening
	}
	if end, waits := w.NextRoll(t.now()); waits {
		return obstacle{reason: plan.RolledRecently, end: end}
	}
	if end, rolls, too := w.TooOften(t.now()); too {
		return obstacle{reason: plan.RolledTooOften, end: end, said: rolls}
	}
	if why := t.pause(w); why.reason != plan.None {
		return why
	}
	if at.After(t.now()) {
		opening.soon = true
		return opening
	}
	return obstacle{}
}

// pause returns until when the changes of a workload are gathered. If someone has paused the Deployment itself, no pause begins.
func (t *timing) pause(w *workload.Workload) obstacle {
	now := t.now()
	since := now
	if p := t.gathering.byKey[w.Key()]; p != nil && !p.rollsSince.IsZero() {
		since = p.rollsSince
	}
	end, begins := w.Pause.Of(since, now)
	if !now.Before(end) || begins && w.IsPausedBySomeone() {
		return obstacle{}
	}
	return obstacle{reason: plan.Pausing, end: end, begins: begins}
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
	if w == nil {
		return false
	}
	why := t.stop(w)
	return why.reason != plan.None && !why.soon
}
