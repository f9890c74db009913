package workload

import "github.com/keyturn/keyturn/internal/events"

// kept is what is known of the last patch of a workload that could not be written on it.
type kept struct {
	rolled                   map[string]RolledFor
	revision, recordRevision string
	// instead is the record on the workload meanwhile. Once someone has written another one, that counts.
	instead string
}

// Keeping returns the workload with what a patch would have written, as it is in another state of it, for as long as it is seen.
func (w *Workload) Keeping(patched *Workload) *Workload {
	return w.with(kept{rolled: patched.Rolled, revision: patched.Revision, recordRevision: patched.recordRevision})
}

// KeepingStart returns the workload with what its last outcome says that a Job of it was started for. It is false if no Jobs of it are started, if
// its own record says for what, or if the outcome does not.
func (w *Workload) KeepingStart(last events.Outcome) (*Workload, bool) {
	started := last.Verb == events.VerbStarted || last.Verb == events.VerbCompleted
	if !w.starts || !started || last.Workload.UID != w.ID.UID || w.Revision != "" || w.stored.record[annotationRolled] != "" {
		return nil, false
	}
	return w.with(kept{rolled: ChangesOf(last), revision: last.Revision, recordRevision: last.Revision}), true
}

func (w *Workload) with(k kept) *Workload {
	k.instead = w.stored.record[annotationRolled]
	keeping := *w
	keeping.kept, keeping.Rolled, keeping.Revision, keeping.recordRevision = &k, k.rolled, k.revision, k.recordRevision
	return &keeping
}

// recallKept adds what an earlier state keeps.
func (w *Workload) recallKept(earlier *Workload) {
	if k := earlier.kept; k != nil && w.kept == nil && k.instead == w.stored.record[annotationRolled] {
		*w = *w.with(*k)
	}
}
