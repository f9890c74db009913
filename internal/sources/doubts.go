package sources

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

const (
	// doubtInterval is how often a source is assessed again while the cached object may be older than its last event. About once a minute, the API
	// server sends each watch its current resourceVersion, even if nothing changes.
	doubtInterval = time.Minute
	// doubtNews is how many times the cache must have advanced if resourceVersions do not decide. It is two because at the first time more may be
	// about to arrive.
	doubtNews = 2
)

// doubt is about the last event of a source, which another watcher has published while this one watched. The cache may be older than that event, for
// example while the connection to the API server stalls. Then it does not show whether a missing object is gone or not created yet, nor whether a
// cached one exists again or is already deleted.
type doubt struct {
	// version is the resourceVersion that the cache had reached at the time at, and news is how often it has advanced since the first time.
	version string
	at      time.Time
	news    int
}

// isAhead reports whether the last event of a source may be newer than the cached object, nil if there is none. version is the one that the cache had
// reached before the object was looked up.
//
//	last event                                   cache
//	known at the start, or of this watcher       is newer
//	of another watcher                           is as new if its resourceVersion is not lower
//	of another watcher: a deletion of an object  is undecided by resourceVersions: the event does not have that of the deletion
//	that is cached
//
// If the resourceVersion does not decide, the cache counts as newer after it has advanced for a while: the resourceVersion of an event may be from a
// cluster that this one has replaced, and stay higher forever.
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
