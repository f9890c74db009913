package sources

import (
	"maps"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/keyturn/keyturn/internal/events"
)

// ledger holds the last event of every source on the stream. It is safe for concurrent use.
type ledger struct {
	// recorded has the functions to call for each recorded event, by kind. A kind may have none.
	recorded map[events.Kind]func(events.Source, *lastEvent)

	mu      sync.RWMutex
	entries map[events.Source]*lastEvent
	// heard has the sources whose last event was published by another watcher while this one watched, until this one has seen the same state.
	heard map[events.Source]struct{}
}

func newLedger(recorded map[events.Kind]func(events.Source, *lastEvent)) *ledger {
	return &ledger{recorded: recorded, entries: make(map[events.Source]*lastEvent), heard: make(map[events.Source]struct{})}
}

func (l *ledger) get(source events.Source) *lastEvent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.entries[source]
}

// set records the last event of a source, about which this watcher knows at least as much as the publisher of the event, unless it has only published
// again what another one said. Nil means that the source has no event.
func (l *ledger) set(source events.Source, entry *lastEvent) {
	l.mu.Lock()
	if !l.entries[source].isAbout(entry) {
		delete(l.heard, source)
	}
	l.put(source, entry)
	l.mu.Unlock()
	l.report(source, entry)
}

// replace records what the stream has, unless an event other than known was recorded meanwhile. It reports whether it recorded the entry.
func (l *ledger) replace(source events.Source, known, entry *lastEvent) bool {
	l.mu.Lock()
	if l.entries[source] != known {
		l.mu.Unlock()
		return false
	}
	l.put(source, entry)
	switch {
	case !entry.isReadable():
		delete(l.heard, source)
	case !known.isAbout(entry):
		l.heard[source] = struct{}{}
	}
	l.mu.Unlock()
	l.report(source, entry)
	return true
}

// isHearsay reports whether the last event of a source is about a state that this watcher may not have seen yet.
func (l *ledger) isHearsay(source events.Source, entry *lastEvent) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, heard := l.heard[source]
	return heard && l.entries[source] == entry
}

// confirm records that this watcher has seen the state that the last event of a source is about.
func (l *ledger) confirm(source events.Source, entry *lastEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[source] == entry {
		delete(l.heard, source)
	}
}

func (l *ledger) put(source events.Source, entry *lastEvent) {
	if entry == nil {
		delete(l.entries, source)
		return
	}
	// The strings are copied for the same reason as in events.NewLastChange.
	source.Namespace, source.Name = unique.Make(source.Namespace).Value(), strings.Clone(source.Name)
	l.entries[source] = entry
}

func (l *ledger) report(source events.Source, entry *lastEvent) {
	if recorded := l.recorded[source.Kind]; recorded != nil && entry != nil {
		recorded(source, entry)
	}
}

// all returns the last event of every source.
func (l *ledger) all() map[events.Source]*lastEvent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return maps.Clone(l.entries)
}

// forgetTombstones drops the deletions that the stream no longer keeps because of their age.
func (l *ledger) forgetTombstones(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.entries, func(_ events.Source, entry *lastEvent) bool { return entry.isExpired(now, events.TombstoneTTL) })
	maps.DeleteFunc(l.heard, func(source events.Source, _ struct{}) bool { return l.entries[source] == nil })
}

// holdings is what the stream must hold according to the ledger.
type holdings struct {
	events uint64
	// oldest and newest are sequences, and last is the source of the newest event.
	oldest, newest uint64
	last           events.Source
}

// tombstoneMargin is how much earlier than due the ledger expects the stream to drop a tombstone, because their clocks may differ.
const tombstoneMargin = time.Hour

// isHeld reports whether the stream must hold the event.
func (l *lastEvent) isHeld(now time.Time) bool {
	return l.Seq != 0 && !l.isExpired(now, events.TombstoneTTL-tombstoneMargin)
}

// holdings returns what the stream must hold for the sources for which watched returns true.
func (l *ledger) holdings(now time.Time, watched func(events.Source) bool) holdings {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var held holdings
	for source, entry := range l.entries {
		if !entry.isHeld(now) || !watched(source) {
			continue
		}
		held.events++
		if held.oldest == 0 || entry.Seq < held.oldest {
			held.oldest = entry.Seq
		}
		if entry.Seq > held.newest {
			held.newest, held.last = entry.Seq, source
		}
	}
	return held
}

// count is the number of sources of a kind on the stream.
type count struct{ existing, failing int64 }

// count counts the existing sources by kind, and those whose last event is a failure, of those for which watched returns true. The last event of any
// other stays as it is, even if it is repaired.
func (l *ledger) count(watched func(events.Source) bool) map[events.Kind]count {
	l.mu.RLock()
	defer l.mu.RUnlock()
	counts := make(map[events.Kind]count)
	for source, entry := range l.entries {
		if !entry.isReadable() || entry.Verb() == events.VerbDeleted || !watched(source) {
			continue
		}
		n := counts[source.Kind]
		n.existing++
		if entry.Verb() == events.VerbFailed {
			n.failing++
		}
		counts[source.Kind] = n
	}
	return counts
}

// sources lists the sources that exist according to the stream.
func (l *ledger) sources() []events.Source {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := make([]events.Source, 0, len(l.entries))
	for source, entry := range l.entries {
		if entry.isReadable() && entry.Verb() != events.VerbDeleted {
			list = append(list, source)
		}
	}
	return list
}
