package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// longWait is how long a change may wait before pods may have started meanwhile.
const longWait = 5 * time.Second

// Memory is what a leader remembers of a workload and a source, in addition to the state of the workload. The zero value remembers nothing. If the
// workload has a record of the source, memory may spare it a roll but never causes one.
type Memory struct {
	// Now is the current time. Since is when this leader first saw a change that is not decided yet, zero if unknown: if content came and went since,
	// pods may have either.
	Now, Since time.Time
	// From is the content before that change, or nil if unknown. It is used only for a workload without a record.
	From *events.Change
	// Base is the state when the leader began to read. If it is nil, every change counts as made since.
	Base *Base
	// GapFrom is the time until which leaders have seen every change. Later changes up to Base may be undecided. Zero means unknown.
	GapFrom time.Time
	// Owed says that this leader has decided to roll the workload for the source and has not rolled it yet. Base and GapFrom do not matter then.
	Owed bool
}

// Base is the last event of a source when the stream was first read, or the last write of a workload that was first seen after that.
type Base struct {
	// Version is its resourceVersion. It is empty if the source had no event, or one of the gap of which a later event has taken the place.
	Version string
	// Deleted says that the event was a deletion, which has the resourceVersion of the previous event.
	Deleted bool
	// MetAt is when the workload was first seen, if Version is that of the workload.
	MetAt time.Time
}

// isFresh reports whether pods cannot have started since the first undecided change.
func (m Memory) isFresh() bool { return !m.Since.IsZero() && m.Now.Sub(m.Since) <= longWait }

// hasWaited reports whether pods may have started since the first undecided change, with content that no longer exists.
func (q *question) hasWaited() bool {
	if !q.recorded {
		return !q.memory.isFresh()
	}
	_, reverted := q.w.Reverted[q.now.Source.String()] // Pods of the reverted roll may still run.
	return q.isFlip() && (reverted || !q.memory.isFresh())
}

// isBeforeOptIn reports whether the content changed before the workload began to want the source. A record from before an opt-out does not count.
func (q *question) isBeforeOptIn() bool {
	return (q.isLinked() || !q.recorded) && !q.isNoted() && !q.isNews(q.seen.changedAt)
}

// isNews reports whether a change at a version came after the workload began to want the source, or may have come while nobody led.
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
	// An event that is new here but has an earlier time was lost and published again.
	wasThere := q.now.ResourceVersion == base.Version && (q.recorded || q.isLaterThanWish())
	return q.at().After(q.memory.GapFrom) && (base.Version == "" || wasThere)
}

// isFlip reports whether the content has changed since the record and then back again. Once decided, such a change is recorded. The creation of a
// source is such a change only if the source had other content before. A record with an impossible version does not tell.
func (q *question) isFlip() bool {
	hadOther := q.now.Previous != "" && q.now.Previous != q.now.Fingerprint
	return !q.distrusted && events.Newer(q.seen.changedAt, q.last.Version) && (q.seen.changedAt != q.now.CreatedAt || hadOther)
}

// isLinked reports whether the workload has begun to want the source in its present way after it was first seen. An existing record is then from an
// earlier time, and does not tell which content the pods have.
func (q *question) isLinked() bool {
	_, linked := q.link()
	return linked
}

// link returns since when the workload has wanted the source in its present way.
func (q *question) link() (workload.Link, bool) { return q.w.Link(q.now.Source, ignoredOf(q.now)...) }

// isAfter reports whether a change at a version came after the workload began to want the source.
func (q *question) isAfter(link workload.Link, version string) bool {
	now, isDated := q.now, !link.Written.IsZero()
	switch {
	case now.Verb == events.VerbDeleted || now.Source.Kind == events.KindOpenBao:
		// The event has no resourceVersion of the deletion, and a store has only times of another clock. If in doubt, roll.
		return isDated && q.at().Add(clockMargin).After(link.Written)
	case events.Newer(version, link.Version):
		return true
	}
	// If workloads and sources are not in the same etcd, only times can be compared.
	return version != "" && version == now.ResourceVersion && isDated && link.Written.Add(clockMargin).Before(now.WrittenAt)
}

// at returns when the last event happened: when the object was written or, if that is unknown, when a watcher saw the change.
func (q *question) at() time.Time {
	now := q.now
	if now.Verb == events.VerbDeleted || now.Source.Kind == events.KindOpenBao || now.WrittenAt.IsZero() {
		return now.Time
	}
	return now.WrittenAt
}

// isLaterThanWish reports whether, by write times, the source has certainly changed after the workload came to want its sources.
func (q *question) isLaterThanWish() bool {
	at, wanted := q.now.WrittenAt, q.w.WantedBy()
	if q.now.Verb == events.VerbDeleted {
		at = q.now.Time // The time of the deletion is unknown, so use that at which the watcher saw it.
	}
	return !wanted.IsZero() && at.After(wanted.Add(clockMargin))
}
