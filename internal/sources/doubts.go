package sources

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// doubtInterval is how often a source is assessed again while what is cached may be older than its last event. An API server tells each watch
	// about once a minute how far it is, also where nothing changes.
	doubtInterval = time.Minute
	// doubtNews is how often the cache must have become newer where the resourceVersions do not tell. Twice, because at the first time it may be
	// about to hear more.
	doubtNews = 2
)

// doubts are about sources of which another watcher has published an event while this one watched: what is cached may be older, as while the
// connection to the API server stalls. It then does not tell what was created since from what is gone, nor what was deleted from what exists
// again. It is safe for concurrent use.
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
	// version is how far the cache was at a time, and news how often it was further than before.
	version string
	at      time.Time
	news    int
}

func newDoubts(l *ledger, now func() time.Time, recheck func(events.Source, time.Duration)) *doubts {
	return &doubts{ledger: l, now: now, recheck: recheck, open: make(map[events.Source]doubt)}
}

// about reports whether what is cached of a source, which is nil if nothing is, may be older than its last event. The version is that of the cache
// before it was read. If so, the source is assessed again later.
//
//	last event                                   cache
//	known at the start, or of this watcher       is newer
//	of another watcher                           is as new if its resourceVersion is not lower
//	a deletion by another watcher of what is     tells nothing by its resourceVersion: the event does not have that of the deletion
//	cached
//
// Where the resourceVersion does not tell, the cache is newer once it has gone on for a while: that of an event may be of a cluster that this one has
// replaced, and higher for good.
func (d *doubts) about(source events.Source, before *lastEvent, now *object, version string) bool {
	if !before.isReadable() || !d.ledger.isHearsay(source, before) {
		d.end(source)
		return false
	}
	isOfCached := before.verb == events.VerbDeleted && now != nil && before.uid == string(now.UID)
	order, err := resourceversion.CompareResourceVersion(version, before.version)
	if err == nil && order >= 0 && !isOfCached || d.isLong(source, before, version) {
		d.ledger.confirm(source, before)
		d.end(source)
		return false
	}
	d.recheck(source, doubtInterval)
	return true
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
