package sources

import (
	"strings"
	"sync"
	"unique"

	"github.com/keyturn/keyturn/internal/events"
)

// ledger holds the last event of every source on the stream. It is safe for concurrent use.
type ledger struct {
	// recorded is called for each event of a kind that is set, if the kind has an entry.
	recorded map[events.Kind]func(events.Source, *lastEvent)

	mu      sync.RWMutex
	entries map[events.Source]*lastEvent
}

func newLedger(recorded map[events.Kind]func(events.Source, *lastEvent)) *ledger {
	return &ledger{recorded: recorded, entries: make(map[events.Source]*lastEvent)}
}

func (l *ledger) get(source events.Source) *lastEvent {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.entries[source]
}

// set records the last event of a source.
func (l *ledger) set(source events.Source, entry *lastEvent) {
	// Copied for the same reason as in newLastEvent.
	source.Namespace, source.Name = unique.Make(source.Namespace).Value(), strings.Clone(source.Name)
	l.mu.Lock()
	l.entries[source] = entry
	l.mu.Unlock()
	if recorded := l.recorded[source.Kind]; recorded != nil {
		recorded(source, entry)
	}
}

// forget drops a source that has no event on the stream.
func (l *ledger) forget(source events.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, source)
}

// supersede records the sequence of an event that cannot be read. The content of the event before it stays known.
func (l *ledger) supersede(source events.Source, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var entry lastEvent
	if before := l.entries[source]; before != nil {
		entry = *before
	}
	entry.seq = seq
	l.entries[source] = &entry
}

// count is the number of sources of a kind on the stream.
type count struct{ existing, failing int64 }

// count counts the existing sources by kind, and those whose last event is a failure.
func (l *ledger) count() map[events.Kind]count {
	l.mu.RLock()
	defer l.mu.RUnlock()
	counts := make(map[events.Kind]count)
	for source, entry := range l.entries {
		if !entry.isReadable() || entry.verb == events.VerbDeleted {
			continue
		}
		n := counts[source.Kind]
		n.existing++
		if entry.verb == events.VerbFailed {
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
		if entry.isReadable() && entry.verb != events.VerbDeleted {
			list = append(list, source)
		}
	}
	return list
}
