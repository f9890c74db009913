package sources

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// merge returns the ledger's entry for a source whose last event on the stream is stored. It is a pure function.
//
//	known                 stored               result
//	any                   cannot be read       known, with the sequence of stored
//	none                  any                  stored
//	any                   the same or later    stored: another watcher published it
//	any                   earlier              known, as lost: the stream was rolled back, or created again
func merge(known, stored *kinds.LastEvent) *kinds.LastEvent {
	switch {
	case !stored.IsReadable():
		var entry kinds.LastEvent
		if known != nil {
			entry = *known
		}
		entry.Seq = stored.Seq
		return &entry
	case known.IsReadable() && follows(known, stored):
		return lostBehind(known, stored.Seq)
	}
	return stored
}

// follows reports whether the known event is later than the stored one, the last one that the stream has.
func follows(known, stored *kinds.LastEvent) bool {
	order := events.CompareVersions(known.ResourceVersion, stored.ResourceVersion)
	if order == 0 && known.Verb() == events.VerbDeleted && stored.Verb() != events.VerbDeleted {
		// A deletion has the version of the event before it. If the stored one has a higher sequence, another watcher has seen the source since.
		return stored.Seq <= known.Seq
	}
	if order == 0 {
		// A publisher that knows of no earlier change only reports that the object exists.
		return events.CompareVersions(known.ChangedAt, stored.ChangedAt) > 0
	}
	// Sequences give the order, unless the stream has started again from low ones.
	return stored.Seq <= known.Seq && order > 0
}

// missing returns the ledger's entry for a source that has no event on the stream. It is nil if there should be no event.
func missing(known *kinds.LastEvent, now time.Time) *kinds.LastEvent {
	if !known.IsReadable() || isExpired(known, now, events.TombstoneTTL) {
		return nil
	}
	return lostBehind(known, 0)
}

// lostBehind returns a copy of an event that is marked as lost by the stream, and that supersedes the event with the given sequence.
func lostBehind(known *kinds.LastEvent, seq uint64) *kinds.LastEvent {
	entry := *known
	entry.Seq, entry.Lost = seq, true
	return &entry
}

// again returns an event as it was published if the stream has lost it, and false otherwise. It leaves out the fingerprint before the change. The
// time is when the event is published again, with two exceptions: a secret in a store, because later reads of the store are compared with its time,
// and a deletion.
func again(last *kinds.LastEvent) (events.Change, bool) {
	if last == nil || !last.Lost {
		return events.Change{}, false
	}
	change := last.Change("", events.Source{})
	change.Previous, change.Trace = "", events.TraceContext{}
	// Workloads that were created after a deletion do not roll for it.
	if change.Verb != events.VerbDeleted && change.Store == nil {
		change.Time = time.Time{}
	}
	return change, true
}

// exists reports whether the source exists according to its last event.
func exists(last *kinds.LastEvent) bool {
	return last.IsReadable() && last.Verb() != events.VerbDeleted
}

// isAbout reports whether two events of a source can be read and are about the same state of the same object.
func isAbout(a, b *kinds.LastEvent) bool {
	return a.IsReadable() && b.IsReadable() && a.Verb() == b.Verb() && a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// isSame reports whether two entries of a source are about the same event at the same place.
func isSame(a, b *kinds.LastEvent) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Seq == b.Seq && a.Lost == b.Lost && a.Verb() == b.Verb() && a.ResourceVersion == b.ResourceVersion && a.ChangedAt == b.ChangedAt &&
		a.KeyID() == b.KeyID() && a.All == b.All
}

// isExpired reports whether an event is a tombstone of at least the given age.
func isExpired(last *kinds.LastEvent, now time.Time, age time.Duration) bool {
	return last.Verb() == events.VerbDeleted && !now.Before(last.Time().Add(age))
}

// tombstoneMargin is how much earlier than due the ledger expects the stream to drop a tombstone, because their clocks may differ.
const tombstoneMargin = time.Hour

// isHeld reports whether the stream must hold an event.
func isHeld(last *kinds.LastEvent, now time.Time) bool {
	return last.Seq != 0 && !isExpired(last, now, events.TombstoneTTL-tombstoneMargin)
}
