package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Baseline returns what may be recorded of a source for a workload whose record says nothing of it, so that a later change is recognized even
// if the stream is lost: what its pods read as of the last event of the source. It is false if that is not known, or not settled yet.
//
// Call it for an event that is decided, so that the workload rolls for it no more. Then it either changed nothing that the pods read, or
// the pods are newer, or the workload has asked for the source only since. What the record has in that last case is not what older pods
// read, but what they are left with: it is the next change that rolls them.
func Baseline(w *workload.Workload, now events.Change) (workload.RolledFor, bool) {
	source := now.Source.String()
	if _, recorded := w.Rolled[source]; recorded || now.ResourceVersion == "" {
		return workload.RolledFor{}, false
	}
	if ref := w.Reference(now.Source); ref != nil && !now.Truncated && lacks(now, ref.Required) {
		return workload.RolledFor{}, false // Running pods have what it was before.
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
