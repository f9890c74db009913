package forcesync

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// turns queues the syncs that are to be patched. Sources take turns, so that a source that many ExternalSecrets read does not delay
// the others. So do the namespaces of each source, because anyone may create ExternalSecrets that read it.
type turns struct {
	waiting map[events.Source]*namespaceTurns
	// order has each source with a waiting sync once, the next one first.
	order []events.Source
	// queued counts the waiting syncs of each namespace.
	queued map[string]int
}

func newTurns() turns {
	return turns{waiting: make(map[events.Source]*namespaceTurns), queued: make(map[string]int)}
}

func (q *turns) push(s *pendingSync) {
	source := s.key.source
	readers := q.waiting[source]
	if readers == nil {
		readers = &namespaceTurns{waiting: make(map[string][]*pendingSync)}
		q.waiting[source] = readers
		q.order = append(q.order, source)
	}
	readers.push(s)
	q.queued[s.key.secret.Namespace]++
}

// pop removes and returns the next sync in a namespace for which may returns true, or nil if there is none. Its source is then the last in turn,
// and so is its namespace among those of the source.
func (q *turns) pop(may func(namespace string) bool) *pendingSync {
	if !q.any(may) {
		return nil
	}
	for i, source := range q.order {
		readers := q.waiting[source]
		next := readers.pop(may)
		if next == nil {
			continue
		}
		q.order = slices.Delete(q.order, i, i+1)
		if len(readers.order) > 0 {
			q.order = append(q.order, source)
		} else {
			delete(q.waiting, source)
		}
		q.count(next)
		return next
	}
	return nil
}

// any reports whether a sync waits in a namespace for which may returns true. It looks at no source, because many may wait when it is called with
// each event.
func (q *turns) any(may func(namespace string) bool) bool {
	for namespace := range q.queued {
		if may(namespace) {
			return true
		}
	}
	return false
}

// count updates queued after a sync has left the queue.
func (q *turns) count(s *pendingSync) {
	namespace := s.key.secret.Namespace
	if q.queued[namespace]--; q.queued[namespace] == 0 {
		delete(q.queued, namespace)
	}
}

// popOwned removes and returns the syncs of a source whose ExternalSecrets were created by the given ClusterExternalSecret.
func (q *turns) popOwned(source events.Source, owner string) []*pendingSync {
	readers := q.waiting[source]
	if readers == nil {
		return nil
	}
	owned := readers.popOwned(owner)
	for _, s := range owned {
		q.count(s)
	}
	if len(readers.order) == 0 {
		delete(q.waiting, source)
		q.order = slices.DeleteFunc(q.order, func(turn events.Source) bool { return turn == source })
	}
	return owned
}

// namespaceTurns queues the syncs of one source.
type namespaceTurns struct {
	waiting map[string][]*pendingSync
	// order has each namespace with a waiting sync once, the next one first.
	order []string
}

func (q *namespaceTurns) push(s *pendingSync) {
	namespace := s.key.secret.Namespace
	if len(q.waiting[namespace]) == 0 {
		q.order = append(q.order, namespace)
	}
	q.waiting[namespace] = append(q.waiting[namespace], s)
}

func (q *namespaceTurns) pop(may func(namespace string) bool) *pendingSync {
	i := slices.IndexFunc(q.order, may)
	if i < 0 {
		return nil
	}
	namespace := q.order[i]
	q.order = slices.Delete(q.order, i, i+1)
	next := q.waiting[namespace][0]
	if rest := q.waiting[namespace][1:]; len(rest) > 0 {
		q.waiting[namespace] = rest
		q.order = append(q.order, namespace)
	} else {
		delete(q.waiting, namespace)
	}
	return next
}

func (q *namespaceTurns) popOwned(owner string) []*pendingSync {
	var owned []*pendingSync
	isOwned := func(s *pendingSync) bool { return s.seen.Owner == owner }
	for _, namespace := range q.order {
		for _, s := range q.waiting[namespace] {
			if isOwned(s) {
				owned = append(owned, s)
			}
		}
		if rest := slices.DeleteFunc(q.waiting[namespace], isOwned); len(rest) > 0 {
			q.waiting[namespace] = rest
		} else {
			delete(q.waiting, namespace)
		}
	}
	q.order = slices.DeleteFunc(q.order, func(namespace string) bool { return q.waiting[namespace] == nil })
	return owned
}
