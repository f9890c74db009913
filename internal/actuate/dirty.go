package actuate

import (
	"sync"

	"github.com/keyturn/keyturn/internal/workload"
)

// dirtySet gathers the workloads that have changed, for the loop to review.
type dirtySet struct {
	signal chan struct{}
	mu     sync.Mutex
	keys   map[workload.Key]struct{}
}

func newDirtySet() *dirtySet {
	return &dirtySet{signal: make(chan struct{}, 1), keys: make(map[workload.Key]struct{})}
}

func (d *dirtySet) add(key workload.Key) {
	d.mu.Lock()
	d.keys[key] = struct{}{}
	d.mu.Unlock()
	select {
	case d.signal <- struct{}{}:
	default: // signaled already
	}
}

// take empties the set and returns what was in it.
func (d *dirtySet) take() map[workload.Key]struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys
	d.keys = make(map[workload.Key]struct{})
	return keys
}
