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

// follows reports whether the known event is later than the stored one, which is the last one on the stream.
func follows(known, stored *kinds.LastEvent) bool {
	order := events.CompareVersions(known.ResourceVersion, stored.ResourceVersion)
	if order == 0 && known.Verb() == events.VerbDeleted && stored.Verb() != events.VerbDeleted {
		// A deletion has the version of the previous event. If the stored event has a higher sequence, another watcher has seen the source since.
		return stored.Seq <= known.Seq
	}
	if order == 0 {
		// A publisher without an earlier event only reports that the object exists.
		return events.CompareVersions(known.ChangedAt, stored.ChangedAt) > 0
	}
	// The sequences decide, unless the stream was created again and has low ones.
	return stored.Seq <= known.Seq && order > 0
}

// missing returns the ledger's entry for a source without an event on the stream. It is nil if there should be none.
func missing(known *kinds.LastEvent, now time.Time) *kinds.LastEvent {
	if !known.IsReadable() || isExpired(known, now, events.TombstoneTTL) {
		return nil
	}
	return lostBehind(known, 0)
}

// lostBehind returns a copy of an event, marked as lost, that supersedes the event with the given sequence.
func lostBehind(known *kinds.LastEvent, seq uint64) *kinds.LastEvent {
	entry := *known
	entry.Seq, entry.Lost = seq, true
	return &entry
}

// again returns an event as it was published, without the previous fingerprint, if the stream has lost it, and false otherwise. The time is that of
// the new publication. A secret in a store and a deletion keep their time, because later reads of the store are compared with it, and workloads
// created after a deletion do not roll for it.
func again(last *kinds.LastEvent) (events.Change, bool) {
	if last == nil || !last.Lost {
		return events.Change{}, false
	}
	change := last.Change("", events.Source{})
	change.Previous, change.Trace = "", events.TraceContext{}
	if change.Verb != events.VerbDeleted && change.Store == nil {
		change.Time = time.Time{}
	}
	return change, true
}

// exists reports whether the source exists according to its last event.
func exists(last *kinds.LastEvent) bool {
	return last.IsReadable() && last.Verb() != events.VerbDeleted
}

// isAbout reports whether two events of a source can be read and show the same state of the same object.
func isAbout(a, b *kinds.LastEvent) bool {
	return a.IsReadable() && b.IsReadable() && a.Verb() == b.Verb() && a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// isSame reports whether two entries of a source show the same event at the same place.
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

// tombstoneMargin is how early the ledger expects the stream to drop a tombstone, as their clocks may differ.
const tombstoneMargin = time.Hour

// isHeld reports whether the stream must have an event.
func isHeld(last *kinds.LastEvent, now time.Time) bool {
	return last.Seq != 0 && !isExpired(last, now, events.TombstoneTTL-tombstoneMargin)
}
