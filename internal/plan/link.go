package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// isLinked reports whether the workload has begun to want the source as it does now since it was first seen. A record that it has nevertheless does
// not name what pods may have: content of the time before.
func (q *question) isLinked() bool {
	_, linked := q.w.Link(q.now.Source)
	return linked
}

// isAfter reports whether a change at a version came after the workload began to want the source.
func (q *question) isAfter(link workload.Link, version string) bool {
	now, isDated := q.now, !link.Written.IsZero()
	switch {
	case now.Verb == events.VerbDeleted || now.Source.Kind == events.KindOpenBao:
		// The event does not have the resourceVersion of the deletion, nor has a store any, only a time by another clock. If in doubt, roll.
		return isDated && q.at().Add(clockMargin).After(link.Written)
	case events.Newer(version, link.Version):
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

// isLaterThanWish reports whether, by the times of the writes, the source has certainly changed after the workload came to want what it wants.
func (q *question) isLaterThanWish() bool {
	at, wanted := q.now.WrittenAt, q.w.WantedBy()
	if q.now.Verb == events.VerbDeleted {
		at = q.now.Time // When the watcher saw the deletion: its own time is not known.
	}
	return !wanted.IsZero() && at.After(wanted.Add(clockMargin))
}
