package plan

import (
	"cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Decide returns what the last event of a source means to a workload:
//
//	w       the workload as last seen
//	now     the last event of the source; without a verb if nothing is known of the source, which is not the same as that it is gone
//	memory  what the leader remembers of the two
//
// It compares two states, and may be called at any time: a workload that got what Decide asks for is left as it is by the next call, and by another
// leader.
func Decide(w *workload.Workload, now events.Change, memory Memory, policy Policy) Decision {
	isKnown := now.Verb != ""
	if !isKnown {
		now = Forgotten(w, now.Source)
	}
	q, decision := policy.ask(w, now, memory)
	switch {
	case q == nil:
		return decision
	case !isKnown && !q.last.OwesDeletion():
		decision.Reason = Unknown
		return decision
	}
	why := q.answer(&decision)
	decision.Record.Version = cmp.Or(decision.Record.Version, workload.NoVersion)
	decision.Records = decision.Reason.Action() == Record || q.isToRecord(why)
	decision.Unnoted = decision.Owes() && !q.isShown(why)
	return decision
}

// isToRecord reports whether the record takes up what the source has, although there is nothing to do for it: what the pods are known to have, what
// they are not rolled for, and what an ignored source has. Otherwise a later event would be compared with something else.
func (q *question) isToRecord(why Reason) bool {
	switch why {
	case BeforeOptIn:
	case SourceIgnored:
		if q.now.Verb == events.VerbDeleted {
			return false
		}
	case FirstSeen, KeysNotConsumed, SameContent:
		if q.recorded && q.last.Fingerprint != q.seen.fingerprint {
			return false // They are of different keys, and cannot be compared.
		}
	default:
		return false
	}
	return !q.lacksRequired() && q.isRecordBehind()
}

// isRecordBehind reports whether the record is not about the last change of the source.
func (q *question) isRecordBehind() bool {
	now := q.record()
	switch {
	case !q.recorded:
		return !q.w.HasDropped(q.now.Source, now.Version)
	case q.last.UID != now.UID:
		return !q.isOfEarlierObject()
	}
	return q.isNoted() || events.Newer(now.Version, q.last.Version)
}

// isShown reports whether the workload itself shows that it is to be rolled for a reason, so that another leader knows.
func (q *question) isShown(why Reason) bool {
	switch {
	case why == Deleted:
		return q.last.OwesDeletion()
	case q.isRecreated():
		return q.isNoted()
	}
	return q.isNoted() || q.recorded && !q.isLinked() // The source differs from that, and the workload wanted it already.
}
