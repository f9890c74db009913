package sources

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// merge returns the ledger's entry for a source whose last event on the stream is stored. It is a pure function.
//
//	known                 stored               result
//	any                   cannot be read       known, with the sequence of stored
//	none                  any                  stored
//	any                   the same or later    stored: another watcher published it
//	any                   earlier              known, as lost: the stream was rolled back, or created again
func merge(known, stored *lastEvent) *lastEvent {
	switch {
	case !stored.isReadable():
		var entry lastEvent
		if known != nil {
			entry = *known
		}
		entry.seq = stored.seq
		return &entry
	case known.isReadable() && known.follows(stored):
		return known.lostBehind(stored.seq)
	}
	return stored
}

// follows reports whether the event is later than the stored one, the last one that the stream has.
func (l *lastEvent) follows(stored *lastEvent) bool {
	order := compareVersions(l.version, stored.version)
	if order == 0 && l.verb == events.VerbDeleted && stored.verb != events.VerbDeleted {
		// A deletion has the version of the event before it. If the stored one has a higher sequence, another watcher has seen the source since.
		return stored.seq <= l.seq
	}
	if order == 0 {
		// A publisher that knows of no earlier change only reports that the object exists.
		return compareVersions(l.changedAt, stored.changedAt) > 0
	}
	// Sequences give the order, unless the stream has started again from low ones.
	return stored.seq <= l.seq && order > 0
}

// missing returns the ledger's entry for a source that has no event on the stream. It is nil if there should be no event.
func missing(known *lastEvent, now time.Time) *lastEvent {
	if !known.isReadable() || known.isExpired(now, events.TombstoneTTL) {
		return nil
	}
	return known.lostBehind(0)
}

// lostBehind returns a copy of the event that is marked as lost by the stream, and that supersedes the event with the given sequence.
func (l *lastEvent) lostBehind(seq uint64) *lastEvent {
	entry := *l
	entry.seq, entry.lost = seq, true
	return &entry
}

// isAbout reports whether two events of a source can be read and are about the same state of the same object.
func (l *lastEvent) isAbout(other *lastEvent) bool {
	return l.isReadable() && other.isReadable() && l.verb == other.verb && l.uid == other.uid && l.version == other.version
}

// isSame reports whether two entries of a source are about the same event at the same place.
func (l *lastEvent) isSame(other *lastEvent) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.seq == other.seq && l.lost == other.lost && l.verb == other.verb && l.version == other.version &&
		l.changedAt == other.changedAt && l.keyID == other.keyID && l.all == other.all
}

// isExpired reports whether the event is a tombstone of at least the given age.
func (l *lastEvent) isExpired(now time.Time, age time.Duration) bool {
	return l.verb == events.VerbDeleted && l.rare != nil && !now.Before(l.rare.deletedAt.Add(age))
}

// again returns the event as it was published if the stream has lost it, and false otherwise. It leaves out the fingerprint before the change. The
// time is when the event is published again, with two exceptions: a secret in a store, because what is read there is compared with its time, and a
// deletion.
func (l *lastEvent) again() (events.Change, bool) {
	if l == nil || !l.lost {
		return events.Change{}, false
	}
	change := l.content(l.verb)
	change.Ignore, change.Match = l.ignore, l.match
	change.WrittenAt = timeOf(l.writtenAt)
	if l.verb != events.VerbObserved && l.verb != events.VerbDeleted && l.changedAt != "" {
		change.Created = l.createdAt == l.changedAt
		change.Changed = l.changedLast(change.Created)
	}
	if l.rare == nil {
		return change, true
	}
	change.Cause, change.Status, change.Store, change.Hold = l.rare.cause, l.rare.status, l.rare.inStore, l.rare.hold
	if l.verb == events.VerbDeleted {
		// Workloads that were created after the deletion do not roll for it.
		change.Time = l.rare.deletedAt
	}
	if l.rare.store != nil {
		change.WrittenAt, change.Time = l.rare.store.writtenAt, l.rare.store.seenAt
	}
	return change, true
}

// changedLast returns the keys that changed with the last change of content. A creation changes all of them.
func (l *lastEvent) changedLast(created bool) []string {
	var names []string
	for _, k := range l.keys {
		if k.changedAt == l.changedAt || created && !k.gone {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return names
}
