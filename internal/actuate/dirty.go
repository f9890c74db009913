package actuate

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// keySet is a set of workloads.
type keySet map[workload.Key]struct{}

// dirtySet collects for the loop the sources and workloads that have changed, and the workloads that may want other sources now, each once.
type dirtySet struct {
	signal chan struct{}
	mu     sync.Mutex
	// news, changed and relinked are nil while no loop runs.
	news              map[events.Source]news
	changed, relinked keySet
}

func newDirtySet() *dirtySet { return &dirtySet{signal: make(chan struct{}, 1)} }

// begin starts collecting for a loop. Call it before the loop reads the index and the state.
func (d *dirtySet) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news, d.changed, d.relinked = make(map[events.Source]news), make(keySet), make(keySet)
}

// end discards everything that the loop has not taken, and stops collecting.
func (d *dirtySet) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news, d.changed, d.relinked = nil, nil, nil
}

// tell records an event of a source. Before is the event that it replaces, nil if there was none, and since is when it arrived.
func (d *dirtySet) tell(source events.Source, before *events.LastChange, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.news == nil {
		return
	}
	n, known := d.news[source]
	if !known {
		n = news{before: before, since: since}
	} else if before != nil && before.Trace().SpanContext().IsValid() {
		n.earlier = newestSpans(n.earlier, before.Trace().SpanContext())
	}
	d.news[source] = n
	d.alert()
}

// WorkloadChanged and WorkloadRelinked are called by the inventory.
func (d *dirtySet) WorkloadChanged(key workload.Key) { d.put(&d.changed, key) }

func (d *dirtySet) WorkloadRelinked(key workload.Key) { d.put(&d.relinked, key) }

func (d *dirtySet) put(to *keySet, key workload.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if *to != nil {
		(*to)[key] = struct{}{}
		d.alert()
	}
}

func (d *dirtySet) alert() {
	select {
	case d.signal <- struct{}{}:
	default: // signaled already
	}
}

func (d *dirtySet) take() (changed, relinked keySet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed, relinked = d.changed, d.relinked
	d.changed, d.relinked = make(keySet), make(keySet)
	return changed, relinked
}

// maxTaken is how many sources the loop takes at a time. Each may have many dependents, each with an outcome to publish.
const maxTaken = 256

// takeNews removes and returns the next sources, and reports whether none are left.
func (d *dirtySet) takeNews() (taken map[events.Source]news, isAll bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken = make(map[events.Source]news, min(len(d.news), maxTaken))
	for source, n := range d.news {
		if len(taken) == maxTaken {
			return taken, false
		}
		taken[source] = n
		delete(d.news, source)
	}
	return taken, true
}

func (d *dirtySet) behind() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.news)
}

// news is what happened to a source since the loop last took it.
type news struct {
	// before is the last event that the loop knows, nil if there was none. since is when the first event after it arrived.
	before *events.LastChange
	since  time.Time
	// earlier are the spans of the events between before and the last event, the newest last. Only the newest are kept.
	earlier []trace.SpanContext
}

// from returns the content of a source before a change, nil if unknown. A deletion or an ignored source does not tell which content pods run with.
func (n news) from(change events.Change) *events.Change {
	before := n.before
	if before == nil || before.Ignore || before.Verb() == events.VerbDeleted || change.Ignore || change.Verb == events.VerbDeleted {
		return nil
	}
	from := before.Change(change.Cluster, change.Source)
	if from.ID() == change.ID() {
		return nil
	}
	return &from
}

// cameAt returns when a change arrived, possibly at an earlier leader. Seen is when a watcher saw the change.
func cameAt(seen, now time.Time) time.Time {
	if !seen.IsZero() && seen.Before(now) {
		return seen
	}
	return now
}
