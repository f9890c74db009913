package workload

import (
	"cmp"
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// kept remembers the last patch that could not be written on the workload.
type kept struct {
	rolled   map[string]RolledFor
	revision string
	last     Last
	// own is the revision on the workload itself.
	own string
	// rolledNow is what the patch records of AnnotationRollNow.
	rolledNow string
	// rolledAt is when the workload was rolled.
	rolledAt time.Time
	// rolls is the count with this roll.
	rolls rolls
	// instead is the record on the workload meanwhile. Once the actuator writes another one, that one counts, and this is dropped.
	instead string
}

// Keeping returns the workload with what a patch would have written on it. Later states keep that. What an earlier such patch would have
// written and this one would not is kept, too: it is not on the object that this patch was made for.
func (w *Workload) Keeping(patched *Workload) *Workload {
	k := kept{
		rolled: patched.Rolled, revision: patched.Revision, last: patched.Last,
		rolledNow: cmp.Or(patched.now.done, w.now.done), rolledAt: w.interval.rolled, rolls: w.breaker.rolls,
	}
	if w.kept != nil && patched.Revision == w.kept.own {
		k.revision, k.last = w.Revision, w.Last // The patch rolls nothing.
	}
	if patched.interval.rolled.After(k.rolledAt) {
		k.rolledAt = patched.interval.rolled
	}
	if patched.breaker.rolls.isLater(k.rolls) {
		k.rolls = patched.breaker.rolls
	}
	return w.with(k)
}

// KeepingStart returns the workload with the changes for which a Job of it was started, according to its last outcome. It returns false if the
// workload starts no Jobs, if its own record already has these changes, or if the outcome has none.
func (w *Workload) KeepingStart(last events.Outcome) (*Workload, bool) {
	started := last.Verb == events.VerbStarted || last.Verb == events.VerbCompleted
	if !w.starts || !started || last.Workload.UID != w.ID.UID || last.Revision == w.Revision {
		return nil, false
	}
	return w.keepingLater(kept{rolled: ChangesOf(last), revision: last.Revision, rolledAt: last.StartedAt})
}

// NeedsStarts reports whether Jobs of the workload may be the only ones to say what they were started for.
func (w *Workload) NeedsStarts() bool {
	return w.starts && !w.OptIn.Empty() && (!w.ours || w.stored.text(annotationRolled) == "")
}

// KeepingStarts returns the workload with the changes that its Jobs were started for, according to the Jobs. It returns false if the workload
// starts no Jobs, or if its record already has these changes.
func (w *Workload) KeepingStarts(s Starts) (*Workload, bool) {
	if !w.NeedsStarts() {
		return nil, false
	}
	return w.keepingLater(kept{rolled: s.rolled, revision: s.revision, rolledNow: s.rolledNow, rolledAt: s.created.Time})
}

// keepingLater returns the workload with what is known of a roll. It returns false if the record already has these changes, or later ones. What the
// workload is still to be rolled for may be later.
func (w *Workload) keepingLater(k kept) (*Workload, bool) {
	rolled, later := make(map[string]RolledFor, len(w.Rolled)+len(k.rolled)), false
	maps.Copy(rolled, w.Rolled)
	for source, change := range k.rolled {
		if last, recorded := rolled[source]; !recorded || events.Newer(change.Version, last.Version) && !last.IsOwed() {
			rolled[source], later = change, true
		}
	}
	if !later {
		return nil, false
	}
	k.rolled, k.last = rolled, Last{Revision: k.revision, At: toSecond(k.rolledAt), Was: wasFine}
	return w.with(k), true
}

func (w *Workload) with(k kept) *Workload {
	k.instead, k.own = w.stored.text(annotationRolled), w.Revision
	if w.kept != nil {
		k.own = w.kept.own
	}
	keeping := *w
	keeping.kept, keeping.Rolled, keeping.Revision, keeping.Last = &k, k.rolled, k.revision, k.last
	keeping.now.done = cmp.Or(k.rolledNow, w.now.done)
	if k.rolledAt.After(w.interval.rolled) {
		keeping.interval.rolled = k.rolledAt
	}
	if k.rolls.isLater(w.breaker.rolls) {
		keeping.breaker.rolls = k.rolls
	}
	return &keeping
}

// recallKept takes over what an earlier state keeps, unless the actuator has written another record since.
func (w *Workload) recallKept(earlier *Workload) {
	if k := earlier.kept; k != nil && w.kept == nil && (!w.ours || k.instead == w.stored.text(annotationRolled)) {
		*w = *w.with(*k)
	}
}
