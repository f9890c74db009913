package actuate

import (
	"sync"

	"github.com/keyturn/keyturn/internal/workload"
)

// dirtySet gathers the workloads that have changed, for the loop to review. It keeps nothing while there is no loop: the next one begins with
// a look at everything in the index.
type dirtySet struct {
	signal chan struct{}
	mu     sync.Mutex
	keys   map[workload.Key]struct{} // nil: there is no loop
}

func newDirtySet() *dirtySet { return &dirtySet{signal: make(chan struct{}, 1)} }

// begin has the set gather for a loop. Call it before the loop looks at the index.
func (d *dirtySet) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = make(map[workload.Key]struct{})
}

// end drops what the loop has not taken, and everything that comes later.
func (d *dirtySet) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = nil
}

func (d *dirtySet) add(key workload.Key) {
	d.mu.Lock()
	gathers := d.keys != nil
	if gathers {
		d.keys[key] = struct{}{}
	}
	d.mu.Unlock()
	if !gathers {
		return
	}
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
	if keys != nil {
		d.keys = make(map[workload.Key]struct{})
	}
	return keys
}
