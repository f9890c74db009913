package plan

import (
	"time"

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
	q := newQuestion(w, ref, want.Keys, now)
	q.date()
	return q.isAfter(link, q.seen.changedAt)
}

// isAfter reports whether a change at a version came after the workload began to want the source.
func (q *question) isAfter(link workload.Link, version string) bool {
	now, isDated := q.now, !link.Written.IsZero()
	switch {
	case now.Verb == events.VerbDeleted || now.Source.Kind == events.KindOpenBao:
		// The event does not have the resourceVersion of the deletion, nor has a store any, only a time by another clock. If in doubt, roll.
		return isDated && q.at().Add(clockMargin).After(link.Written)
	case workload.Newer(version, link.Version):
		return true
	}
	// If workloads and sources are not in the same etcd, only the times can be compared.
	return version != "" && version == now.ResourceVersion && isDated && link.Written.Add(clockMargin).Before(now.WrittenAt)
}

// at returns when the last event came to be: when the object was written, or when a watcher saw the change if that is not known.
func (q *question) at() time.Time {
	now := q.now
	if now.Verb == events.VerbDeleted || now.Source.Kind == events.KindOpenBao || now.WrittenAt.IsZero() {
		return now.Time
	}
	return now.WrittenAt
}

// IsLaterThanWish reports whether, by the times of the writes, a source has certainly changed after the workload came to want what it wants.
func IsLaterThanWish(w *workload.Workload, now events.Change) bool {
	at, wanted := now.WrittenAt, w.WantedBy()
	if now.Verb == events.VerbDeleted {
		at = now.Time // When the watcher saw the deletion: its own time is not known.
	}
	return !wanted.IsZero() && at.After(wanted.Add(clockMargin))
}
