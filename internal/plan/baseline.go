package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Baseline returns what to record about a source for a workload whose record has no entry for it: what the pods read as of the last event of
// the source. With that entry, a later change is recognized even if the stream is lost. Baseline returns false if what the pods read is not
// known, or not settled yet.
//
// Call it only for an event that has been decided, so that the workload will not roll for it any more. Then the event changed nothing that the
// pods read, or the pods are newer, or the workload has wanted the source only since. In the last case the entry is not what older pods have
// read: they are left as they are until the next change rolls them.
func Baseline(w *workload.Workload, now events.Change) (workload.RolledFor, bool) {
	source := now.Source.String()
	if _, recorded := w.Rolled[source]; recorded || now.ResourceVersion == "" {
		return workload.RolledFor{}, false
	}
	if ref := w.Reference(now.Source); ref != nil && !now.Truncated && lacks(now, ref.Required) {
		return workload.RolledFor{}, false // Running pods still have the earlier value.
	}
	decision := Policy{}.Decide(w, now, Past{})
	switch decision.Reason {
	case FirstSeen, PodsNewer, PodsWaited:
	case KeysNotConsumed:
		if !decision.Want.Wanted() {
			return workload.RolledFor{}, false
		}
	case Changed, Appeared, Suspended, Aborted:
		if _, reverted := w.Reverted[source]; reverted || IsLaterThanLink(w, now) {
			return workload.RolledFor{}, false
		}
	default:
		return workload.RolledFor{}, false
	}
	record := decision.Record
	if record.Version == "" {
		record.Version = workload.NoVersion
	}
	return record, true
}
