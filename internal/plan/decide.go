package plan

import (
	"cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Decide returns the decision about the last event of a source for a workload:
//
//	w       the last known state of the workload
//	now     the last event of the source; its Verb is empty if nothing is known of the source, which does not mean that it was deleted
//	memory  what the leader remembers of the workload and the source
//
// It compares two states and may be called at any time: once the decision is carried out, the next call, even by another leader, asks for nothing.
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

// isToRecord reports whether to record the state of the source although it needs no roll: content that the pods are known to have, content that they
// are not rolled for, and the content of an ignored source. Otherwise, a later event would be compared with an outdated entry.
func (q *question) isToRecord(why Reason) bool {
	switch why {
	case BeforeOptIn:
	case SourceIgnored:
		if q.now.Verb == events.VerbDeleted {
			return false
		}
	case FirstSeen, KeysNotConsumed, SameContent:
		if q.recorded && !q.isNoted() && q.last.Fingerprint != q.seen.fingerprint {
			return false // The fingerprints cover different keys and cannot be compared.
		}
	default:
		return false
	}
	return !q.lacksRequired() && q.isRecordBehind()
}

// isRecordBehind reports whether the record is older than the last change of the source.
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

// isShown reports whether the workload itself shows another leader that it is to be rolled.
func (q *question) isShown(why Reason) bool {
	switch {
	case why == Deleted:
		return q.last.OwesDeletion()
	case q.isRecreated():
		return q.isNoted()
	}
	// The source differs from the record, and the workload already wanted it when the record was written.
	return q.isNoted() || q.recorded && !q.isLinked() && !q.distrusted
}

// Decision is the result for one workload and one source.
type Decision struct {
	Source events.Source
	Reason Reason
	// Want is the part of the workload's opt-in that concerns the source.
	Want workload.Want
	// Keys are the changed keys that the pods read: since the record if the workload is rolled, otherwise by the event.
	Keys []string
	// Writers are those who have written the source. They are set only for a roll.
	Writers []string
	// Uncounted are keys that the pods read but whose changes do not count.
	Uncounted []string
	// Record is the entry for the source in the workload's record afterwards. With Skip, it is the entry that a patch would write.
	Record workload.RolledFor
	// Anew says that the source may be a different object from the one that the pods have read, or that the change created it.
	Anew bool
	// Hold is the text of the source's hold. It is set with SourceOnHold.
	Hold string
	// Records says that the next patch must write Record, or a patch of its own once the workload has nothing else to do. Unnoted says that the
	// workload is to be rolled and nothing on it shows this. Only Decide sets them.
	Records, Unnoted bool
	// Contradicted says that the resourceVersions of the workload and the source are not comparable, so they were not compared.
	Contradicted bool
}

// Owes reports whether the workload is to be rolled for the source, now or after a hold.
func (d Decision) Owes() bool {
	return d.Reason.Action() == Roll || d.Reason == SourceOnHold || d.Reason == Aborted
}

// IsNews reports whether this change, not an earlier one, changed the content that the pods read, created it or deleted it.
func (d Decision) IsNews(change events.Change) bool {
	return change.Verb == events.VerbDeleted || d.Record.Version == change.ResourceVersion
}

// Note returns the write for a workload that is not rolled now: the entries that its record lacks, or that others have overwritten. It returns false
// if there are none. The decisions are about sources that the workload wants; waits says that the workload must wait for its roll.
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
