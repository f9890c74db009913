package openbao

import (
	"hash/maphash"
	"sync"
)

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
