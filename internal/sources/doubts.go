package sources

import (
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// doubtInterval is how often a source is assessed again while the cached object may be older than its last event. About once a minute, the API
	// server sends each watch its current resourceVersion, even if nothing changes.
	doubtInterval = time.Minute
	// doubtNews is how many times the cache must have advanced if resourceVersions do not decide. It is two because at the first time more may be
	// about to arrive.
	doubtNews = 2
)

// doubts tracks the sources for which another watcher has published an event while this one watched. The cache may be older than that event, for
// example while the connection to the API server stalls. Then it does not show whether a missing object is gone or not created yet, nor whether a
// cached one exists again or is already deleted. It is safe for concurrent use.
type doubts struct {
	ledger *ledger
	now    func() time.Time
	// recheck assesses a source again after a delay.
	recheck func(source events.Source, delay time.Duration)

	mu   sync.Mutex
	open map[events.Source]doubt
}

// doubt is about one event.
type doubt struct {
	event *lastEvent
	// version is the resourceVersion that the cache had reached at the time at, and news is how often it has advanced.
	version string
	at      time.Time
	news    int
}

func newDoubts(l *ledger, now func() time.Time, recheck func(events.Source, time.Duration)) *doubts {
	return &doubts{ledger: l, now: now, recheck: recheck, open: make(map[events.Source]doubt)}
}

// about reports whether the cached object of a source, nil if there is none, may be older than its last event. If so, the source is assessed again
// later. version is the one that the cache had reached before it was read.
//
//	last event                                   cache
//	known at the start, or of this watcher       is newer
//	of another watcher                           is as new if its resourceVersion is not lower
//	of another watcher: a deletion of an object  is undecided by resourceVersions: the event does not have that of the deletion
//	that is cached
//
// If the resourceVersion does not decide, the cache counts as newer once it has advanced for a while: the resourceVersion of an event may be from a
// cluster that this one has replaced, and stay higher forever.
func (d *doubts) about(source events.Source, before *lastEvent, now *object, version string) bool {
	if !before.isReadable() || !d.ledger.isHearsay(source, before) {
		d.end(source)
		return false
	}
	isOfCached := before.Verb() == events.VerbDeleted && now != nil && before.UID == string(now.UID)
	isPast := events.CompareVersions(version, before.ResourceVersion) >= 0
	if isPast && !isOfCached || d.isLong(source, before, version) {
		d.ledger.confirm(source, before)
		d.end(source)
		return false
	}
	d.recheck(source, doubtInterval)
	return true
}

// isOpen reports whether the cached object of a source may be older than its last event, as far as it was assessed.
func (d *doubts) isOpen(source events.Source) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open := d.open[source]
	return open
}

// isLong reports whether the cache has become newer often enough since the doubt began.
func (d *doubts) isLong(source events.Source, before *lastEvent, version string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	one, at := d.open[source], d.now()
	switch {
	case one.event != before:
		one = doubt{event: before, version: version, at: at}
	case one.version != version && at.Sub(one.at) >= doubtInterval:
		one.version, one.at, one.news = version, at, one.news+1
	}
	d.open[source] = one
	return one.news >= doubtNews
}

func (d *doubts) end(source events.Source) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, source)
}
