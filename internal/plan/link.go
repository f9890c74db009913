package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// isRecordOutdated reports whether pods may have content that the record does not name: that of the time before the write that made the workload want
// the source in the current way, or that of a roll which somebody has reverted, if this leader has decided about it.
func (q *question) isRecordOutdated() bool {
	_, linked := q.w.Link(q.now.Source)
	_, reverted := q.w.Reverted[q.now.Source.String()]
	return linked || reverted && q.past.From != nil
}

// IsLaterThanLink reports whether what a workload reads of a source has changed after the workload began to want it, judging by the last event of
// the source. It returns false if the workload already wanted the source when it was first seen: then the event was decided, or will be.
//
// An earlier change does not concern the workload, like a change from before the workload was annotated.
func IsLaterThanLink(w *workload.Workload, now events.Change) bool {
	link, linked := w.Link(now.Source)
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	if !linked || !want.Wanted() {
		return false
	}
	if now.Verb == events.VerbDeleted || now.Source.Kind == events.KindOpenBao {
		// Neither a deletion nor a store has a resourceVersion to compare, only a time by another clock. As elsewhere, roll if in doubt.
		return !link.Written.IsZero() && now.Time.Add(clockMargin).After(link.Written)
	}
	q := newQuestion(w, ref, want.Keys, now, Past{})
	q.date()
	changedAt := q.seen.changedAt
	switch {
	case changedAt == "":
		return false
	case workload.Newer(changedAt, link.Version):
		return true
	}
	// If workloads and sources are not in the same etcd, only the times can be compared.
	return changedAt == now.ResourceVersion && !link.Written.IsZero() && link.Written.Add(clockMargin).Before(now.WrittenAt)
}

// IsLaterThanWish reports whether, by the times of the writes, a source has certainly changed after the workload came to want what it wants.
func IsLaterThanWish(w *workload.Workload, now events.Change) bool {
	at, wanted := now.WrittenAt, w.WantedBy()
	if now.Verb == events.VerbDeleted {
		at = now.Time // When the watcher saw the deletion: its own time is not known.
	}
	return !wanted.IsZero() && at.After(wanted.Add(clockMargin))
}
