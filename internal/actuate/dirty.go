package actuate

import (
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// keySet is a set of workloads.
type keySet map[workload.Key]struct{}

// dirtySet gathers for the loop the sources that have changed, the workloads that have changed, those that may have come to want other sources, and
// those whose kind is served again. It has each once. Only the last are kept while there is no loop: the next one begins with a look at everything.
type dirtySet struct {
	signal chan struct{}
	mu     sync.Mutex
	// news, changed and relinked are nil if there is no loop.
	news                        map[events.Source]news
	changed, relinked, returned keySet
}

func newDirtySet() *dirtySet {
	return &dirtySet{signal: make(chan struct{}, 1), returned: make(keySet)}
}

// begin has the set gather for a loop. Call it before the loop looks at the index and the state.
func (d *dirtySet) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news, d.changed, d.relinked = make(map[events.Source]news), make(keySet), make(keySet)
}

// end drops what the loop has not taken, and what comes later.
func (d *dirtySet) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news, d.changed, d.relinked = nil, nil, nil
}

// tell takes an event of a source. Before is the last one before it, nil if there was none, and since is when it came.
func (d *dirtySet) tell(source events.Source, before *events.LastChange, since time.Time) {
	d.mu.Lock()
	gathers := d.news != nil
	if gathers {
		if earlier, known := d.news[source]; known {
			d.news[source] = earlier.followedBy(before)
		} else {
			d.news[source] = news{before: before, since: since}
		}
	}
	d.mu.Unlock()
	d.alert(gathers)
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
	d.alert(gathers)
}

// alert wakes the loop if there is something for it.
func (d *dirtySet) alert(isAny bool) {
	if !isAny {
		return
	}
	select {
	case d.signal <- struct{}{}:
	default: // signaled already
	}
}

// take returns the workloads, and forgets them.
func (d *dirtySet) take() (changed, relinked, returned keySet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed, relinked, returned = d.changed, d.relinked, d.returned
	if changed != nil {
		d.changed, d.relinked, d.returned = make(keySet), make(keySet), make(keySet)
	}
	return changed, relinked, returned
}

// takeNews returns the sources, and forgets them.
func (d *dirtySet) takeNews() map[events.Source]news {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.news
	if len(taken) > 0 {
		d.news = make(map[events.Source]news)
	}
	return taken
}
