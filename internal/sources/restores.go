package sources

import (
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// maxLag is how long reads must agree on an older state until it counts. No server of a store lags behind that long.
const maxLag = 5 * time.Minute

// restores finds the secrets of stores that were restored from a snapshot: reads keep returning an older state than that of the last event. The
// states of an engine without versions are ordered by the clocks of the store's servers, of which one may be late. It is safe for concurrent use.
type restores struct {
	mu    sync.Mutex
	older map[events.Source]olderState
}

// olderState is a state that reads have returned since a time.
type olderState struct {
	revision string
	since    time.Time
}

func newRestores() *restores { return &restores{older: make(map[events.Source]olderState)} }

// lasts records what was read about a secret. It reports whether reads have returned an older state than that of the last event for at least maxLag.
func (r *restores) lasts(source events.Source, before *lastEvent, seen openbao.Observation) bool {
	recorded := before.inStore()
	if recorded == nil || !seen.ReadAt.After(recorded.seenAt) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	isAnother := seen.Version < recorded.version
	if seen.Version == 0 {
		isAnother = !seen.At.IsZero() && !seen.At.Equal(recorded.writtenAt)
	}
	if !isAnother || !isOlder(before, seen) {
		delete(r.older, source)
		return false
	}
	waiting, ok := r.older[source]
	if revision := storeRevision(seen); !ok || waiting.revision != revision {
		r.older[source] = olderState{revision: revision, since: seen.ReadAt}
		return false
	}
	return seen.ReadAt.Sub(waiting.since) >= maxLag
}
