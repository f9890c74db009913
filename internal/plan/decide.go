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
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	decision := Decision{Source: now.Source, Want: want}
	if !want.Wanted() {
		decision.Reason = unwanted[want.Reason]
		return decision
	}
	q := &question{w: w, ref: ref, want: want, now: now, memory: memory, policy: policy, seen: viewOf(now, want)}
	q.last, q.recorded = w.Rolled[now.Source.String()]
	q.distrust()
	q.date()
	if !isKnown && !q.last.OwesDeletion() {
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
		if q.recorded && !q.isNoted() && q.last.Fingerprint != q.seen.fingerprint {
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
		return !q.hasDropped(now.Version)
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
	// The source differs from what is recorded, and the workload wanted it already.
	return q.isNoted() || q.recorded && !q.isLinked() && !q.distrusted
}

// Decision is what one workload needs because of one source.
type Decision struct {
	Source events.Source
	Reason Reason
	// Want is what the workload's annotations say about the source.
	Want workload.Want
	// Keys are the keys that the pods read and that have changed: for a roll since the record, otherwise with the event.
	Keys []string
	// Writers says who writes the source. It is set only for a roll.
	Writers []string
	// Uncounted are keys that the pods read and that do not count.
	Uncounted []string
	// Record is what the workload's record says about the source afterwards; with Skip, what it would say.
	Record workload.RolledFor
	// Anew says that the source may be a different object from the one that the pods have read, or was created by the change.
	Anew bool
	// Hold is why the source is on hold. It is set with SourceOnHold.
	Hold string
	// Records says that the record is to take up Record with the next patch, or alone once the workload has nothing else to do. Unnoted says that the
	// workload is to be rolled, and that nothing on it shows that. Only Decide sets them.
	Records, Unnoted bool
	// Contradicted says that the resourceVersions of the workload and the source are not comparable, and were not compared.
	Contradicted bool
}

// Owes reports whether the workload is to be rolled for the source, now or once what holds that is over.
func (d Decision) Owes() bool {
	return d.Reason.Action() == Roll || d.Reason == SourceOnHold || d.Reason == Aborted
}

// IsNews reports whether the change itself changed what the pods read, or made it appear or go. Otherwise an earlier one did, if any.
func (d Decision) IsNews(change events.Change) bool {
	return change.Verb == events.VerbDeleted || d.Record.Version == change.ResourceVersion
}

// Note returns what a patch writes on a workload that is not rolled now: all that the record lacks, or that others have overwritten. It returns false
// if that is nothing. The decisions are about sources that the workload wants; waits says that it has to wait with what it is to be rolled for.
func Note(w *workload.Workload, decisions []Decision, waits bool) (workload.Write, bool) {
	entries := make(map[string]workload.RolledFor)
	for _, decision := range decisions {
		switch source := decision.Source.String(); {
		case decision.Records:
			entries[source] = decision.Record
		case decision.Unnoted && waits:
			entries[source] = workload.Owed(decision.Record)
		}
	}
	return workload.Write{Rolled: entries}, len(w.Notable(entries)) > 0 || w.IsRecordLost()
}
