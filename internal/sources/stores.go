package sources

import (
	"sync"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// storeKind is the kind of secrets in stores. It turns observations of the feed into pending sources.
type storeKind struct {
	feed      *openbao.Feed
	sightings *sightings
	restores  *kinds.Restores
	ledger    *ledger
	ring      *kinds.Keyring
	pending   *pendingSources
}

// sight stores an observation, and returns false if there is no room for it. It ignores a state that is on the stream already.
func (s *storeKind) sight(seen openbao.Observation) bool {
	source := seen.Path.Source()
	before := s.ledger.get(source)
	seen.Lasting = s.restores.Lasts(source, before, seen)
	if kinds.IsKnown(before, seen) {
		return true
	}
	if !s.sightings.add(seen) {
		return false
	}
	s.pending.add(source)
	return true
}

func (s *storeKind) assess(source events.Source, before *kinds.LastEvent, _ queueEntry) assessment {
	seen := s.sightings.get(source)
	if seen == nil {
		return publishAgain(before)
	}
	change, ok := kinds.AssessStore(s.ring, before, *seen, s.ledger.firstOf(seen.Path))
	if !ok {
		s.sightings.done(source, seen)
		return publishAgain(before)
	}
	return assessment{change: change, publish: true, seen: seen}
}

// knownPaths lists the secrets of a mount that exist according to the stream.
func (s *storeKind) knownPaths(store, namespace, mount string) []string {
	var paths []string
	for _, source := range s.ledger.sources() {
		path, err := source.StorePath()
		if err == nil && path.Store == store && path.Namespace == namespace && path.Mount == mount {
			paths = append(paths, path.Path)
		}
	}
	return paths
}

// maxSightings is the maximum number of secrets that wait for their event to be published.
const maxSightings = 10000

// sightings contains the latest observation of each secret in a store that is not on the stream yet. It is safe for concurrent use.
type sightings struct {
	mu   sync.Mutex
	seen map[events.Source]*openbao.Observation
}

func newSightings() *sightings {
	return &sightings{seen: make(map[events.Source]*openbao.Observation)}
}

// add stores an observation. It returns false if there is no room.
func (s *sightings) add(seen openbao.Observation) bool {
	source := seen.Path.Source()
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.seen[source]
	switch {
	case waiting == nil && len(s.seen) >= maxSightings:
		return false
	case waiting != nil && waiting.Version == seen.Version && waiting.State == seen.State && seen.Operation == "":
		// The observation from the audit log has more details.
	case waiting == nil || !isLater(waiting, &seen):
		s.seen[source] = &seen
	}
	return true
}

// isLater reports whether a certainly shows a later state than b. Versions alone do not tell, because they start at one again for a secret that is
// created again. Neither do times, because each server of the store has its own clock.
func isLater(a, b *openbao.Observation) bool {
	if a.Version > b.Version && a.At.After(b.At) {
		return true
	}
	return !b.ReadAt.IsZero() && a.Received.After(b.Received) && a.ReadAt.After(b.ReadAt)
}

func (s *sightings) get(source events.Source) *openbao.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[source]
}

// done drops an observation unless there is a newer one. It reports whether it did.
func (s *sightings) done(source events.Source, seen *openbao.Observation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen == nil || s.seen[source] != seen {
		return false
	}
	delete(s.seen, source)
	return true
}
