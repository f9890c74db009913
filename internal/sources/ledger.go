package sources

import (
	"maps"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// ledger holds the last event of every source on the stream. It is safe for concurrent use.
type ledger struct {
	mu      sync.RWMutex
	entries map[events.Source]*kinds.LastEvent
	// doubts has the sources whose last event was published by another watcher while this one watched, until this one has seen the same state.
	doubts map[events.Source]*doubt
	// mounts has when the first secret of each mount in a store was seen.
	mounts map[events.StorePath]time.Time
}

func newLedger() *ledger {
	return &ledger{
		entries: make(map[events.Source]*kinds.LastEvent), doubts: make(map[events.Source]*doubt), mounts: make(map[events.StorePath]time.Time),
	}
}

func (l *ledger) get(source events.Source) *kinds.LastEvent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.entries[source]
}

// set records the last event of a source, about which this watcher knows at least as much as the publisher of the event, unless it has only published
// again the event of another one. Nil means that the source has no event.
func (l *ledger) set(source events.Source, entry *kinds.LastEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isAbout(l.entries[source], entry) {
		delete(l.doubts, source)
	}
	l.put(source, entry)
}

// replace records what the stream has, unless an event other than known was recorded meanwhile. It reports whether it recorded the entry.
func (l *ledger) replace(source events.Source, known, entry *kinds.LastEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[source] != known {
		return false
	}
	l.put(source, entry)
	switch {
	case !entry.IsReadable():
		delete(l.doubts, source)
	case !isAbout(known, entry):
		l.doubts[source] = &doubt{}
	}
	return true
}

func (l *ledger) put(source events.Source, entry *kinds.LastEvent) {
	if entry == nil {
		delete(l.entries, source)
		return
	}
	// The strings are copied for the same reason as in events.NewLastChange.
	source.Namespace, source.Name = unique.Make(source.Namespace).Value(), strings.Clone(source.Name)
	l.entries[source] = entry
	if source.Kind != events.KindOpenBao || !entry.IsReadable() {
		return
	}
	if mount, err := source.StorePath(); err == nil {
		mount.Path = ""
		if first, ok := l.mounts[mount]; !ok || entry.Time().Before(first) {
			l.mounts[mount] = entry.Time()
		}
	}
}

// firstOf returns when the first secret in the mount of the path was seen, or zero.
func (l *ledger) firstOf(path events.StorePath) time.Time {
	path.Path = ""
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.mounts[path]
}

// all returns the last event of every source.
func (l *ledger) all() map[events.Source]*kinds.LastEvent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return maps.Clone(l.entries)
}

// sources lists the sources that exist according to the stream.
func (l *ledger) sources() []events.Source {
	l.mu.RLock()
	defer l.mu.RUnlock()
	list := make([]events.Source, 0, len(l.entries))
	for source, entry := range l.entries {
		if exists(entry) {
			list = append(list, source)
		}
	}
	return list
}

// forgetTombstones drops the deletions that the stream no longer keeps because of their age.
func (l *ledger) forgetTombstones(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.entries, func(source events.Source, entry *kinds.LastEvent) bool {
		expired := isExpired(entry, now, events.TombstoneTTL)
		if expired {
			delete(l.doubts, source)
		}
		return expired
	})
}

// holdings is what the stream must hold according to the ledger.
type holdings struct {
	events uint64
	// oldest and newest are sequences, and last is the source of the newest event.
	oldest, newest uint64
	last           events.Source
}

// holdings returns what the stream must hold for the sources for which watched returns true.
func (l *ledger) holdings(now time.Time, watched func(events.Source) bool) holdings {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var held holdings
	for source, entry := range l.entries {
		if !isHeld(entry, now) || !watched(source) {
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
		if !exists(entry) || !watched(source) {
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
