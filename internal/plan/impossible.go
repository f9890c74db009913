package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Whoever has the token of the actuator can write a record. One that says that the workload was rolled for a version to come would make all changes
// up to that version look like old ones. So a version counts only if it can have been there when the record was written.

// distrust forgets the version that the record has for the source if it is impossible. The content in the entry still counts: with the same the pods
// are left alone, and with another one they are rolled, once, because that writes the entry anew. An entry of another object of the name has its
// content compared in any case.
func (q *question) distrust() {
	switch {
	case !q.recorded:
		// A mark in memory may be about another source, and newer than the workload, which was not written.
		q.distrusted = !q.w.IsUnwritten() && q.isImpossible(q.w.DroppedTo(q.now.Source), markTolerance)
	case q.last.UID == q.now.UID && q.isImpossible(q.last.Version, 0):
		q.distrusted, q.last.Version = true, workload.NoVersion
	}
}

// markTolerance is how far a mark of what a record had no room for may be ahead of the time, beyond what any version of a store may be. It is the
// version of whichever secret in the store changed last. Of a store whose clock is ahead it is newer than the last event of each other secret, and
// these would be rolled for again and again. A forged mark silences a day.
const markTolerance = 24 * time.Hour

// isImpossible reports whether a version of the source in the record is one that its writer cannot have seen. In two etcds the source may be ahead of
// the workload, so what is not ahead of the last event of the source counts. The clock of a store may be further ahead by the tolerance.
func (q *question) isImpossible(version string, tolerance time.Duration) bool {
	now := q.memory.Now
	if !now.IsZero() {
		now = now.Add(tolerance)
	}
	return events.Newer(version, q.now.ResourceVersion) && q.w.IsAhead(q.now.Source.Kind, version, now)
}

// hasDropped reports whether the record had no room for the source, and the workload is done with it up to a version.
func (q *question) hasDropped(version string) bool {
	return !q.distrusted && q.w.HasDropped(q.now.Source, version)
}

// blaming returns the reason instead of one that says nothing of an impossible version: people must learn of it. A deletion stays one.
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
