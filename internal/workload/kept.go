package workload

import (
	"cmp"
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// kept is what is known of the last patch of a workload that could not be written on it.
type kept struct {
	rolled                   map[string]RolledFor
	revision, recordRevision string
	// own is the revision on the workload itself.
	own string
	// rolledNow is what it records of AnnotationRollNow.
	rolledNow string
	// rolledAt is when that was.
	rolledAt time.Time
	// rolls are those that it counts.
	rolls rolls
	// instead is the record on the workload meanwhile. Once someone has written another one, that counts.
	instead string
}

// Keeping returns the workload with what a patch would have written on it, which later states of it keep. What an earlier one would have, and
// this one would not, stays: it is not on the object that the patch was made for.
func (w *Workload) Keeping(patched *Workload) *Workload {
	k := kept{
		rolled: patched.Rolled, revision: patched.Revision, recordRevision: patched.recordRevision,
		rolledNow: cmp.Or(patched.now.done, w.now.done), rolledAt: w.interval.rolled, rolls: w.breaker.rolls,
	}
	if w.kept != nil && patched.Revision == w.kept.own {
		k.revision = w.Revision // The patch rolls nothing.
	}
	if patched.interval.rolled.After(k.rolledAt) {
		k.rolledAt = patched.interval.rolled
	}
	if patched.breaker.rolls.isLater(k.rolls) {
		k.rolls = patched.breaker.rolls
	}
	return w.with(k)
}

// KeepingStart returns the workload with the changes for which a Job of it was started, as its last outcome has them. It returns false if no Jobs
// of it are started, if its own record has them, or if the outcome does not.
func (w *Workload) KeepingStart(last events.Outcome) (*Workload, bool) {
	started := last.Verb == events.VerbStarted || last.Verb == events.VerbCompleted
	if !w.starts || !started || last.Workload.UID != w.ID.UID || last.Revision == w.Revision {
		return nil, false
	}
	return w.keepingLater(kept{rolled: ChangesOf(last), revision: last.Revision, rolledAt: last.StartedAt})
}

// NeedsStarts reports whether Jobs of the workload may be the only ones to say what they were started for.
func (w *Workload) NeedsStarts() bool {
	return w.starts && !w.OptIn.Empty() && w.stored.text(annotationRolled) == ""
}

// KeepingStarts returns the workload with what Jobs of it say that they were started for. It is false if no Jobs of it are started, or if that is
// known.
func (w *Workload) KeepingStarts(s Starts) (*Workload, bool) {
	if !w.NeedsStarts() {
		return nil, false
	}
	return w.keepingLater(kept{rolled: s.rolled, revision: s.revision, rolledNow: s.rolledNow, rolledAt: s.created.Time})
}

// keepingLater returns the workload with what is known of a roll, and false if its record has all that this was for, or what came after it.
func (w *Workload) keepingLater(k kept) (*Workload, bool) {
	rolled, later := make(map[string]RolledFor, len(w.Rolled)+len(k.rolled)), false
	maps.Copy(rolled, w.Rolled)
	for source, change := range k.rolled {
		if last, recorded := rolled[source]; !recorded || Newer(change.Version, last.Version) {
			rolled[source], later = change, true
		}
	}
	if !later {
		return nil, false
	}
	k.rolled, k.recordRevision = rolled, k.revision
	return w.with(k), true
}

func (w *Workload) with(k kept) *Workload {
	k.instead, k.own = w.stored.text(annotationRolled), w.Revision
	if w.kept != nil {
		k.own = w.kept.own
	}
	keeping := *w
	keeping.kept, keeping.Rolled, keeping.Revision, keeping.recordRevision = &k, k.rolled, k.revision, k.recordRevision
	keeping.now.done = cmp.Or(k.rolledNow, w.now.done)
	if k.rolledAt.After(w.interval.rolled) {
		keeping.interval.rolled = k.rolledAt
	}
	if k.rolls.isLater(w.breaker.rolls) {
		keeping.breaker.rolls = k.rolls
	}
	return &keeping
}

// recallKept adds what an earlier state keeps.
func (w *Workload) recallKept(earlier *Workload) {
	if k := earlier.kept; k != nil && w.kept == nil && k.instead == w.stored.text(annotationRolled) {
		*w = *w.with(*k)
	}
}
