package sources

import (
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
		entry.Seq = stored.Seq
		return &entry
	case known.isReadable() && known.follows(stored):
		return known.lostBehind(stored.Seq)
	}
	return stored
}

// follows reports whether the event is later than the stored one, the last one that the stream has.
func (l *lastEvent) follows(stored *lastEvent) bool {
	order := events.CompareVersions(l.ResourceVersion, stored.ResourceVersion)
	if order == 0 && l.Verb() == events.VerbDeleted && stored.Verb() != events.VerbDeleted {
		// A deletion has the version of the event before it. If the stored one has a higher sequence, another watcher has seen the source since.
		return stored.Seq <= l.Seq
	}
	if order == 0 {
		// A publisher that knows of no earlier change only reports that the object exists.
		return events.CompareVersions(l.ChangedAt, stored.ChangedAt) > 0
	}
	// Sequences give the order, unless the stream has started again from low ones.
	return stored.Seq <= l.Seq && order > 0
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
	entry.Seq, entry.Lost = seq, true
	return &entry
}

// isAbout reports whether two events of a source can be read and are about the same state of the same object.
func (l *lastEvent) isAbout(other *lastEvent) bool {
	return l.isReadable() && other.isReadable() && l.Verb() == other.Verb() && l.UID == other.UID && l.ResourceVersion == other.ResourceVersion
}

// isSame reports whether two entries of a source are about the same event at the same place.
func (l *lastEvent) isSame(other *lastEvent) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.Seq == other.Seq && l.Lost == other.Lost && l.Verb() == other.Verb() && l.ResourceVersion == other.ResourceVersion &&
		l.ChangedAt == other.ChangedAt && l.KeyID() == other.KeyID() && l.All == other.All
}

// isExpired reports whether the event is a tombstone of at least the given age.
func (l *lastEvent) isExpired(now time.Time, age time.Duration) bool {
	return l.Verb() == events.VerbDeleted && !now.Before(l.Time().Add(age))
}

// again returns the event as it was published if the stream has lost it, and false otherwise. It leaves out the fingerprint before the change. The
// time is when the event is published again, with two exceptions: a secret in a store, because what is read there is compared with its time, and a
// deletion.
func (l *lastEvent) again() (events.Change, bool) {
	if l == nil || !l.Lost {
		return events.Change{}, false
	}
	change := l.Change("", events.Source{})
	change.Previous, change.Trace = "", events.TraceContext{}
	// Workloads that were created after a deletion do not roll for it.
	if change.Verb != events.VerbDeleted && change.Store == nil {
		change.Time = time.Time{}
	}
	return change, true
}
