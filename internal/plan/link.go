package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// isRecordOutdated reports whether the record is older than the write by which the workload came to want the source as it does. Pods that
// started before that have what the source had then, which was not recorded.
func (q *question) isRecordOutdated() bool {
	_, linked := q.w.Link(q.now.Source)
	return linked && q.recorded || q.isRecordReplaced()
}

// isRecordReplaced reports whether the record is not of the content that was decided last, as where `kubectl rollout undo` has put back the
// annotations of an earlier revision: the pods that it started have the later content. Nothing was recorded of content that lacked a key.
func (q *question) isRecordReplaced() bool {
	from := q.past.From
	if from == nil || q.ref != nil && lacks(*from, q.ref.Required) {
		return false
	}
	had := viewOf(*from, q.keys)
	return q.last.Differs(workload.RolledFor{Fingerprint: had.fingerprint, Scope: had.scope})
}

// IsLaterThanLink reports whether what a workload reads of a source has changed since it wants it, as far as the last event of the source
// tells. It is false if the workload wanted the source already when it was first seen: then the event was decided, or will be.
//
// A change that came before is not what the workload has asked for, like a change before the workload was annotated.
func IsLaterThanLink(w *workload.Workload, now events.Change) bool {
	link, linked := w.Link(now.Source)
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	if !linked || !want.Wanted() {
		return false
	}
	if now.Verb == events.VerbDeleted {
		// The event has no resourceVersion of the deletion, only the time by another clock. As elsewhere, what is not certain is rolled.
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
	// Where workloads and sources are not in one etcd, only the times tell.
	return changedAt == now.ResourceVersion && !link.Written.IsZero() && link.Written.Add(clockMargin).Before(now.WrittenAt)
}

// IsLaterThanWish reports whether a source has certainly changed after the workload came to want what it wants, by the times of the writes.
func IsLaterThanWish(w *workload.Workload, now events.Change) bool {
	at, wanted := now.WrittenAt, w.WantedBy()
	if now.Verb == events.VerbDeleted {
		at = now.Time // When the watcher saw the deletion: nothing has a time of it.
	}
	return !wanted.IsZero() && at.After(wanted.Add(clockMargin))
}
