package actuate

import "github.com/keyturn/keyturn/internal/events"

// baselines keeps the last event of each source that concerns a workload, to compare the next one with.
type baselines map[events.Source]events.Change

// next returns the event of the source before this one, nil if it is not known, and keeps this one if relevant. A redelivered
// event says nothing about the content before it; a deletion or an ignored source says nothing about what the pods run.
func (b baselines) next(change events.Change, relevant bool) *events.Change {
	before, ok := b[change.Source]
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

// took reports whether the event was taken, and was the last of its source. What it means to a workload without pending changes is decided.
func (b baselines) took(change events.Change) bool {
	last, ok := b[change.Source]
	return ok && last.ID() == change.ID()
}

// forget drops a source: what comes next must not be compared with content that a workload never got.
func (b baselines) forget(source events.Source) { delete(b, source) }
