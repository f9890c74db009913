package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// isRecordOutdated reports whether the record is older than the write that made the workload want the source in the current way. Pods that
// started before that write have the content of that time, which was not recorded.
func (q *question) isRecordOutdated() bool {
	_, linked := q.w.Link(q.now.Source)
	return linked && q.recorded || q.isRecordReplaced()
}

// isRecordReplaced reports whether the record differs from the content that was decided last. This happens when `kubectl rollout undo` restores
// the annotations of an earlier revision: the pods that it starts have the later content. Content that lacked a required key was not recorded.
func (q *question) isRecordReplaced() bool {
	from := q.past.From
	if from == nil || q.ref != nil && lacks(*from, q.ref.Required) {
		return false
	}
	had := viewOf(*from, q.keys)
	return q.last.Differs(workload.RolledFor{Fingerprint: had.fingerprint, Scope: had.scope})
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
	if now.Verb == events.VerbDeleted {
		// The event does not have the resourceVersion of the deletion, only a time by another clock. As elsewhere, roll if in doubt.
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
