package forcesync

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// turns queues the syncs that are to be patched. Sources take turns, so that a source that many ExternalSecrets read does not delay
// the others.
type turns struct {
	waiting map[events.Source][]*pendingSync
	// order has each source with a waiting sync once, the next one first.
	order []events.Source
}

func newTurns() turns { return turns{waiting: make(map[events.Source][]*pendingSync)} }

func (q *turns) push(s *pendingSync) {
	source := s.key.source
	if len(q.waiting[source]) == 0 {
		q.order = append(q.order, source)
	}
	q.waiting[source] = append(q.waiting[source], s)
}

// pop removes and returns the next sync, or nil if none is waiting.
func (q *turns) pop() *pendingSync {
	if len(q.order) == 0 {
		return nil
	}
	source := q.order[0]
	q.order = q.order[1:]
	next := q.waiting[source][0]
	q.waiting[source] = q.waiting[source][1:]
	if len(q.waiting[source]) > 0 {
		q.order = append(q.order, source)
	} else {
		delete(q.waiting, source)
	}
	return next
}

// popOwned removes and returns the syncs of a source whose ExternalSecrets were created by the given ClusterExternalSecret.
func (q *turns) popOwned(source events.Source, owner string) []*pendingSync {
	var owned, rest []*pendingSync
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
		q.order = slices.DeleteFunc(q.order, func(turn events.Source) bool { return turn == source })
	}
	return owned
}
