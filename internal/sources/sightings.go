package sources

import (
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// maxSightings is the number of secrets that may wait for their event to be published.
const maxSightings = 10000

// sightings holds the latest observation of each secret in a store that is not on the stream yet. It is safe for concurrent
// use.
type sightings struct {
	mu   sync.Mutex
	seen map[events.Source]*openbao.Observation
	// first is when the first secret of each mount was seen, by mount.
	first map[events.StorePath]time.Time
}

func newSightings() *sightings {
	return &sightings{seen: make(map[events.Source]*openbao.Observation), first: make(map[events.StorePath]time.Time)}
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
	case waiting == nil || !laterThan(waiting, &seen):
		s.seen[source] = &seen
	}
	return true
}

// laterThan reports whether a is certainly about a later state than b. A version alone does not tell: they start at one again if a secret is created
// again. Nor does a time: another server of the store may have another clock.
func laterThan(a, b *openbao.Observation) bool {
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

// done forgets an observation unless there is a newer one. It reports whether it did.
func (s *sightings) done(source events.Source, seen *openbao.Observation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen == nil || s.seen[source] != seen {
		return false
	}
	delete(s.seen, source)
	return true
}

// recorded forgets the observation of a secret once it is on the stream, and records when the first secret of its mount was seen.
func (s *sightings) recorded(source events.Source, entry *lastEvent) {
	state := entry.inStore()
	path, err := source.StorePath()
	if state == nil || err != nil {
		return
	}
	path.Path = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.first[path]; !ok || state.seenAt.Before(first) {
		s.first[path] = state.seenAt
	}
	if seen := s.seen[source]; seen != nil && isKnown(entry, *seen) {
		delete(s.seen, source)
	}
}

// firstOf returns when the first secret in the mount of the path was seen, or zero.
func (s *sightings) firstOf(path events.StorePath) time.Time {
	path.Path = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[path]
}
