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

// ledger contains the last event of every source on the stream. It is safe for concurrent use.
type ledger struct {
	mu      sync.RWMutex
	entries map[events.Source]*kinds.LastEvent
	doubts  map[events.Source]*doubt
	mounts  map[events.StorePath]time.Time // when the first secret of each mount in a store was seen
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

// set records the last event of a source. This watcher knows at least as much as the event's publisher, unless it has published another watcher's
// event again. Nil means that the source has no event.
func (l *ledger) set(source events.Source, entry *kinds.LastEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isAbout(l.entries[source], entry) {
		delete(l.doubts, source)
	}
	l.put(source, entry)
}

// replace records the event on the stream, unless an event other than known was recorded meanwhile. It reports whether it did.
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

// forgetTombstones drops the deletions that the stream has dropped because of their age.
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

// newest returns the source and the sequence of the newest event that the stream must have, of the sources for which watched returns true. Both are
// empty if there is none.
func (l *ledger) newest(now time.Time, watched func(events.Source) bool) (of events.Source, seq uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for source, entry := range l.entries {
		if entry.Seq > seq && isHeld(entry, now) && watched(source) {
			of, seq = source, entry.Seq
		}
	}
	return of, seq
}

// count is the number of sources of a kind on the stream.
type count struct{ existing, failing int64 }

// count counts the existing sources by kind, and those whose last event is a failure, of the sources for which watched returns true. The last events
// of other sources may be outdated.
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

const (
	// doubtInterval is how often a source is assessed again while the cached object may be older than its last event. Even without changes, the API
	// server sends each watch its current resourceVersion about once a minute.
	doubtInterval = time.Minute
	// doubtNews is how often the cache must have advanced if resourceVersions do not decide. It is two because more objects may be about to arrive
	// after the first time.
	doubtNews = 2
)

// doubt is about the last event of a source if another watcher published it while this one ran. The cache may be older than the event, for example if
// the connection to the API server stalls. Then it does not tell whether a missing object is deleted or not created yet, or whether a cached one
// exists again or is deleted already.
type doubt struct {
	// version is the resourceVersion of the cache at the time at, and news is how often it has advanced since the first check.
	version string
	at      time.Time
	news    int
}

// isAhead reports whether the last event of a source may be newer than the cached object, which is nil if there is none. Version is the
// resourceVersion that the cache had reached before the object was looked up.
//
//	last event                                   cache
//	known at the start, or of this watcher       is newer
//	of another watcher                           is as new if its resourceVersion is not lower
//	of another watcher: a deletion of an object  is undecided by resourceVersions: the event does not have that of the deletion
//	that is cached
//
// If the resourceVersion does not decide, the cache counts as newer after it has advanced for a while, because an event may have a high
// resourceVersion from a cluster that this one has replaced.
func (l *ledger) isAhead(source events.Source, before *kinds.LastEvent, now *kinds.Object, version string, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.doubts[source]
	if d == nil || l.entries[source] != before {
		return false
	}
	isOfCached := before.Verb() == events.VerbDeleted && now != nil && before.UID == string(now.UID)
	switch {
	case events.CompareVersions(version, before.ResourceVersion) >= 0 && !isOfCached:
		delete(l.doubts, source)
		return false
	case d.at.IsZero():
		d.version, d.at = version, at
	case d.version != version && at.Sub(d.at) >= doubtInterval:
		d.version, d.at, d.news = version, at, d.news+1
	}
	if d.news >= doubtNews {
		delete(l.doubts, source)
		return false
	}
	return true
}
