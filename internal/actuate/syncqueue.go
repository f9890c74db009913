package actuate

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// syncQueue holds what waits to be asked. The changes take turns, so that one that many ExternalSecrets read does not hold
// up another.
type syncQueue struct {
	waiting map[events.Source][]*forcedSync
	// turns are the sources that have something waiting, the next one first.
	turns []events.Source
}

func newSyncQueue() *syncQueue { return &syncQueue{waiting: make(map[events.Source][]*forcedSync)} }

func (q *syncQueue) push(s *forcedSync) {
	source := s.key.source
	if len(q.waiting[source]) == 0 {
		q.turns = append(q.turns, source)
	}
	q.waiting[source] = append(q.waiting[source], s)
}

// pop takes out the next; nil where there is none.
func (q *syncQueue) pop() *forcedSync {
	if len(q.turns) == 0 {
		return nil
	}
	source := q.turns[0]
	q.turns = q.turns[1:]
	next := q.waiting[source][0]
	q.waiting[source] = q.waiting[source][1:]
	if len(q.waiting[source]) > 0 {
		q.turns = append(q.turns, source)
	} else {
		delete(q.waiting, source)
	}
	return next
}

// popOwned takes out those of a source that the ClusterExternalSecret of the name makes.
func (q *syncQueue) popOwned(source events.Source, owner string) []*forcedSync {
	var owned, rest []*forcedSync
	for _, s := range q.waiting[source] {
		if s.seen.Owner == owner {
			owned = append(owned, s)
		} else {
			rest = append(rest, s)
		}
	}
	if len(owned) == 0 {
		return nil
	}
	if q.waiting[source] = rest; len(rest) == 0 {
		delete(q.waiting, source)
		q.turns = slices.DeleteFunc(q.turns, func(turn events.Source) bool { return turn == source })
	}
	return owned
}
