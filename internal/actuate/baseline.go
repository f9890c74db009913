package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// baselines keeps the last event of each source that concerns a workload, to compare the next one with.
type baselines map[events.Source]events.Change

// isEarlier reports whether a change is an earlier one of the same object than another. A redelivery may come after a later event: the server
// that sends it may not know of that yet.
func isEarlier(change, than events.Change) bool {
	return change.UID == than.UID && workload.Newer(than.ResourceVersion, change.ResourceVersion)
}

// next returns the event of the source before this one, nil if it is not known, and keeps this one if relevant. A redelivered
// event says nothing about the content before it; a deletion or an ignored source says nothing about what the pods run.
func (b baselines) next(change events.Change, relevant bool) *events.Change {
	before, ok := b[change.Source]
	if ok && isEarlier(change, before) {
		return nil
	}
	if !relevant || change.Ignore || change.Verb == events.VerbDeleted {
		delete(b, change.Source)
		return nil
	}
	b[change.Source] = change
	if !ok || before.ID() == change.ID() {
		return nil
	}
	return &before
}

// isDecided reports whether the last event of a source, as read from the stream, is decided for a workload without pending changes: it was taken,
// or acked when this leader had taken none of the source. If another one was taken last, this one was read before that or is still to come.
func (b baselines) isDecided(change events.Change, acked bool) bool {
	last, ok := b[change.Source]
	if !ok {
		return acked
	}
	return last.ID() == change.ID()
}

// forget drops a source: what comes next must not be compared with content that a workload never got.
func (b baselines) forget(source events.Source) { delete(b, source) }
