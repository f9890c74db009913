package sources

import "github.com/keyturn/keyturn/internal/events"

// assessor says what the event of a source is, against the last event on its subject, nil where there is none. It is false
// where there is nothing to say. It leaves out the cluster, the source and the time. The event's Trace is that of what led
// to it, where that is known.
//
// There is one for each kind that is watched. The last events of these kinds are what the ledger is filled with.
type assessor func(source events.Source, before *last, noticed queueEntry) (events.Change, bool)

// assessObject makes the assessor of a kind whose sources are objects that informers cache.
func (w *Watcher) assessObject(kind source) assessor {
	return func(source events.Source, before *last, noticed queueEntry) (events.Change, bool) {
		if !w.inScope(source) {
			return events.Change{}, false
		}
		return kind.assess(w, before, w.lookup(source), noticed)
	}
}
