package openbao

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// intake accepts the audit lines of a store from the receiver. It never blocks.
type intake struct {
	store   string
	looks   *looks
	polls   pollRequests
	status  *status
	metrics *metrics
	recent  *recentRequests
	bodies  chan struct{} // has an element for each body that is read: each store has its own room, so that none is without because of another
	now     func() time.Time
}

// take accepts an audit line. It keeps the path to look at, not the line. It returns false, and counts nothing, if there is no room.
func (i *intake) take(ctx context.Context, line []byte) bool {
	e, result := decodeLine(line)
	switch {
	case result != malformed:
		i.status.noteLine(i.now())
	case promising(line):
		i.polls.ask() // The line may be a part of a change.
	}
	if result == used {
		e.receiveAt(i.now())
		result = i.lookOnce(e)
	}
	if result == dropped {
		return false
	}
	i.metrics.countLine(ctx, i.store, result)
	return true
}

// lookOnce has the path of an entry looked at, unless the entry of the same request came before.
func (i *intake) lookOnce(e entry) verdict {
	i.recent.mu.Lock()
	defer i.recent.mu.Unlock()
	switch {
	case i.recent.has(&e):
		return ignored
	case !i.looks.add(e):
		return dropped
	}
	i.recent.add(&e)
	return used
}

// miss is called when a part of the audit log could not be accepted.
func (i *intake) miss(ctx context.Context, result verdict) {
	i.metrics.countLine(ctx, i.store, result)
	i.polls.ask()
}

// skip is called with the start of a line that is too long to be decoded. It reports whether the line may have been a change.
func (i *intake) skip(ctx context.Context, head []byte) bool {
	if promising(head) {
		i.miss(ctx, dropped)
		return true
	}
	i.metrics.countLine(ctx, i.store, ignored)
	return false
}

// refuse is called when a sender is not allowed.
func (i *intake) refuse(ctx context.Context) { i.metrics.countLine(ctx, i.store, refused) }

// maxRecent is the number of requests that are remembered.
const maxRecent = 4096

// recentRequests remembers the requests of the last entries. A line may arrive twice: from two audit devices, or from a log shipper that got no
// answer. Its fields are guarded by mu, which its owner locks.
type recentRequests struct {
	mu    sync.Mutex
	seed  maphash.Seed
	known map[uint64]struct{}
	order [maxRecent]uint64 // a ring of the keys of known
	next  int
}

func newRecentRequests() *recentRequests {
	return &recentRequests{seed: maphash.MakeSeed(), known: make(map[uint64]struct{})}
}

// key returns the key of an entry's request, or zero if it has none.
func (r *recentRequests) key(e *entry) uint64 {
	if e.request == "" {
		return 0
	}
	return maphash.Comparable(r.seed, struct {
		request, namespace, path, operation string
		version                             int64
	}{e.request, e.namespace, e.path, e.operation, e.version})
}

func (r *recentRequests) has(e *entry) bool {
	_, ok := r.known[r.key(e)]
	return ok
}

func (r *recentRequests) add(e *entry) {
	key := r.key(e)
	if key == 0 {
		return
	}
	delete(r.known, r.order[r.next])
	r.order[r.next], r.known[key] = key, struct{}{}
	r.next = (r.next + 1) % maxRecent
}
