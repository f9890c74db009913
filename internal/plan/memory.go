package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// LongWait is how long a change may wait before pods are assumed to have possibly started meanwhile.
const LongWait = 5 * time.Second

// Memory is what a leader remembers of one workload and one source, besides what is on the workload. The zero value knows nothing. If the workload
// has a record of the source, then what is remembered may spare it a roll, and never causes one.
type Memory struct {
	// Now is the time, and Since is when this leader first saw a change that is not decided yet: if content comes and goes, the pods may have either.
	// Since is zero if that is not known.
	Now, Since time.Time
	// From is the content before that change, or nil if it is not known. It counts only for a workload without a record.
	From *events.Change
	// Base is what was there when the leader began to read. It is nil if that is not known: then every change counts as made since.
	Base *Base
	// GapFrom is the time until which leaders have seen each change. One between that and Base may not be decided. Zero means that nobody knows.
	GapFrom time.Time
	// Owed says that this leader has decided to roll the workload for the source, and has not done so yet. Base and GapFrom do not matter any more.
	Owed bool
}

// Base is the last event of a source in the first complete reading of the stream, or the last write of a workload that was only met after it.
type Base struct {
	// Version is its resourceVersion. It is empty if the source had no event.
	Version string
	// Deleted says that it was a deletion, which has the resourceVersion of the event before it.
	Deleted bool
	// MetAt is when the workload was met, if Version is that of the workload.
	MetAt time.Time
}

// isFresh reports whether no pods have started since the first change that is not decided yet.
func (m Memory) isFresh() bool { return !m.Since.IsZero() && m.Now.Sub(m.Since) <= LongWait }

// hasWaited reports whether pods may have started since the first change that is not decided yet, with content that no longer exists.
func (q *question) hasWaited() bool {
	if !q.recorded {
		return !q.memory.isFresh()
	}
	_, reverted := q.w.Reverted[q.now.Source.String()] // Pods of the roll that was reverted may be left.
	return q.isFlip() && (reverted || !q.memory.isFresh())
}

// isBeforeOptIn reports whether the content changed before the workload began to want the source. A record from before an opt-out does not show that.
func (q *question) isBeforeOptIn() bool {
	return (q.isLinked() || !q.recorded) && !q.isNoted() && !q.isNews(q.seen.changedAt)
}

// isNews reports whether a change at a version came after the workload began to want the source, or may have come then while nobody led.
func (q *question) isNews(version string) bool {
	base := q.memory.Base
	if base == nil || q.memory.Owed {
		return true
	}
	if link, linked := q.link(); linked {
		return q.isAfter(link, version)
	}
	isGone := q.now.Verb == events.VerbDeleted && !base.Deleted &&
		(version == base.Version || !base.MetAt.IsZero() && q.now.Time.After(base.MetAt))
	if base.Version != "" && (isGone || events.Newer(version, base.Version)) {
		return true
	}
	// An event that was not there, and is about an earlier time, was lost and published again.
	wasThere := q.now.ResourceVersion == base.Version && (q.recorded || q.isLaterThanWish())
	return q.at().After(q.memory.GapFrom) && (base.Version == "" || wasThere)
}

// isFlip reports whether the content has changed since it was recorded, and is what was recorded again. Such a change is recorded once it is decided.
// What a source was created with is a change if the source had something else before it was gone. Nobody knows that of an impossible record.
func (q *question) isFlip() bool {
	hadOther := q.now.Previous != "" && q.now.Previous != q.now.Fingerprint
	return !q.distrusted && events.Newer(q.seen.changedAt, q.last.Version) && (q.seen.changedAt != q.now.CreatedAt || hadOther)
}

// isLinked reports whether the workload has begun to want the source as it does now since it was first seen. A record that it has nevertheless does
// not name what pods may have: content of the time before.
func (q *question) isLinked() bool {
	_, linked := q.link()
	return linked
}

// link returns since when the workload has wanted the source as it does now.
func (q *question) link() (workload.Link, bool) { return q.w.Link(q.now.Source, ignoredOf(q.now)...) }

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
