package actuate

import (
	"sync"

	"github.com/keyturn/keyturn/internal/workload"
)

// keySet is a set of workloads.
type keySet map[workload.Key]struct{}

// dirtySet gathers for the loop the workloads that have changed, those that may have come to want other sources, and those whose kind is served
// again. Only the last are kept while there is no loop: the next one begins with a look at everything in the index.
type dirtySet struct {
	signal chan struct{}
	mu     sync.Mutex
	// changed and relinked are nil if there is no loop.
	changed, relinked, returned keySet
}

func newDirtySet() *dirtySet {
	return &dirtySet{signal: make(chan struct{}, 1), returned: make(keySet)}
}

// begin has the set gather for a loop. Call it before the loop looks at the index.
func (d *dirtySet) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed, d.relinked = make(keySet), make(keySet)
}

// end drops what the loop has not taken, and what comes later.
func (d *dirtySet) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed, d.relinked = nil, nil
}

func (d *dirtySet) add(key workload.Key) { d.put(&d.changed, key) }

func (d *dirtySet) relink(key workload.Key) { d.put(&d.relinked, key) }

func (d *dirtySet) comeBack(key workload.Key) { d.put(&d.returned, key) }

func (d *dirtySet) put(to *keySet, key workload.Key) {
	d.mu.Lock()
	gathers := *to != nil
	if gathers {
		(*to)[key] = struct{}{}
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
func (d *dirtySet) take() (changed, relinked, returned keySet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed, relinked, returned = d.changed, d.relinked, d.returned
	if changed != nil {
		d.changed, d.relinked, d.returned = make(keySet), make(keySet), make(keySet)
	}
	return changed, relinked, returned
}
