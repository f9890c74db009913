package actuate

import (
	"sync"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// dirtySet gathers the workloads that have changed, for the loop to review, and the sources that they have come to want. It keeps nothing
// while there is no loop: the next one begins with a look at everything in the index.
type dirtySet struct {
	signal chan struct{}
	mu     sync.Mutex
	keys   map[workload.Key]struct{} // nil: there is no loop
	links  map[question]struct{}
}

func newDirtySet() *dirtySet { return &dirtySet{signal: make(chan struct{}, 1)} }

// begin has the set gather for a loop. Call it before the loop looks at the index.
func (d *dirtySet) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys, d.links = make(map[workload.Key]struct{}), make(map[question]struct{})
}

// end drops what the loop has not taken, and everything that comes later.
func (d *dirtySet) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys, d.links = nil, nil
}

func (d *dirtySet) add(key workload.Key) {
	d.put(func() { d.keys[key] = struct{}{} })
}

// link takes the sources that a workload has come to want.
func (d *dirtySet) link(key workload.Key, sources []events.Source) {
	d.put(func() {
		for _, source := range sources {
			d.links[question{workload: key, source: source, why: recallLinked}] = struct{}{}
		}
	})
}

func (d *dirtySet) put(write func()) {
	d.mu.Lock()
	gathers := d.keys != nil
	if gathers {
		write()
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
func (d *dirtySet) take() (keys map[workload.Key]struct{}, links map[question]struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys, links = d.keys, d.links
	if keys != nil {
		d.keys, d.links = make(map[workload.Key]struct{}), make(map[question]struct{})
	}
	return keys, links
}
