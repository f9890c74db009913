package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Anyone with the actuator's token can write a record, and one with a future version would make all changes up to that version look old. So a version
// counts only if it can have existed when the record was written.

// distrust drops an impossible version of the source from the record. The content in the entry still counts: if it is current, the pods are left
// alone; otherwise they are rolled, once, because the roll writes a new entry. If the entry is about another object of the name, the contents are
// compared anyway.
func (q *question) distrust() {
	switch {
	case !q.recorded:
		// A mark in memory may be about another source, and newer than the workload, because it was not written.
		q.distrusted = !q.w.IsUnwritten() && q.isImpossible(q.w.DroppedTo(q.now.Source), markTolerance)
	case q.last.UID == q.now.UID && q.isImpossible(q.last.Version, 0):
		q.distrusted, q.last.Version = true, workload.NoVersion
	}
}

// markTolerance is how far the mark of dropped entries may be in the future, in addition to the limit for versions of a store. The mark is the newest
// version of any secret in the store. If the store's clock is ahead, the mark is newer than the last event of every other secret, and without a
// tolerance these would be rolled for again and again. A forged mark hides changes for a day.
const markTolerance = 24 * time.Hour

// isImpossible reports whether the writer of the record cannot have seen the version. With two etcds, the source may be ahead of the workload, so a
// version up to that of the last event is possible. The clock of a store may be further ahead by the tolerance.
func (q *question) isImpossible(version string, tolerance time.Duration) bool {
	now := q.memory.Now
	if !now.IsZero() {
		now = now.Add(tolerance)
	}
	return events.Newer(version, q.now.ResourceVersion) && q.w.IsAhead(q.now.Source.Kind, version, now)
}

// hasDropped reports whether the record had no room for the source but the workload has every change up to the version.
func (q *question) hasDropped(version string) bool {
	return !q.distrusted && q.w.HasDropped(q.now.Source, version)
}

// blaming replaces a reason that hides an impossible version, because users must learn of it. Deleted remains.
func (q *question) blaming(why Reason) Reason {
	isLeft := why == SameContent || why == FirstSeen || why == KeysNotConsumed
	switch {
	case !q.distrusted:
		return why
	case why.Action() == Roll && why != Deleted:
		return RecordImpossible
	case isLeft && q.recorded && q.last.Fingerprint == q.seen.fingerprint && !q.lacksRequired():
		return RecordCorrected
	}
	return why
}
