package inventory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Index holds the workloads, and finds those that a source may concern without a request to the API server. It is safe for concurrent use.
type Index struct {
	// options has the functions that are called, without the lock, after a workload has changed.
	options Options

	mu        sync.RWMutex
	workloads map[workload.Key]*workload.Workload
	bySource  links[events.Source]
	// runners maps a workload, which need not exist, to the workloads that run pods of its template, or whose controller it is.
	runners links[workload.Key]
	// byPattern holds the workloads that name sources by a pattern, by namespace. Secrets in stores are in the namespace "".
	byPattern links[string]
	// waves has the workloads with a wave other than 0, by namespace.
	waves links[string]
	// unserved has the kinds that the API server does not serve, and since when that is known.
	unserved map[Place]time.Time
}

// newIndex returns an index without workloads.
func newIndex(options Options) *Index {
	return &Index{
		options:   options,
		workloads: make(map[workload.Key]*workload.Workload),
		bySource:  make(links[events.Source]),
		runners:   make(links[workload.Key]),
		byPattern: make(links[string]),
		waves:     make(links[string]),
		unserved:  make(map[Place]time.Time),
	}
}

// Read returns the workload of an object, and false if the object is of another kind.
func (x *Index) Read(k workload.Kind, obj runtime.Object) (*workload.Workload, bool) {
	known, _ := x.known(k, obj)
	return workload.ReadAfter(k, obj, x.options.Reading, known)
}

// known returns the known state of the workload of an object, nil if there is none, and whether that is the state of this very object.
func (x *Index) known(k workload.Kind, obj runtime.Object) (w *workload.Workload, isSame bool) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, false
	}
	w = x.Get(workload.Key{Kind: k.Name, Namespace: object.GetNamespace(), Name: object.GetName()})
	return w, w != nil && w.ID.UID == string(object.GetUID()) && w.Version == object.GetResourceVersion()
}

// Get returns a workload, or nil if there is none.
func (x *Index) Get(key workload.Key) *workload.Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.workloads[key]
}

// All lists the workloads, in no order.
func (x *Index) All() []*workload.Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Values(x.workloads))
}

// Count counts the workloads by kind.
func (x *Index) Count() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	count := make(map[string]int)
	for key := range x.workloads {
		count[key.Kind]++
	}
	return count
}

// Reverted counts, by kind, the workloads that are no longer rolled for a change because someone else has reverted more than so many rolls for it.
func (x *Index) Reverted(most int) map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	count := make(map[string]int)
	for key, w := range x.workloads {
		for source := range w.Reverted {
			if w.IsReverted(source, most) {
				count[key.Kind]++
				break
			}
		}
	}
	return count
}

// HasAny reports whether there is any workload in a namespace. If there is none, it looks at those of all others.
func (x *Index) HasAny(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key := range x.workloads {
		if key.Namespace == namespace {
			return true
		}
	}
	return false
}

// HasWaves reports whether any workload of a namespace has a wave.
func (x *Index) HasWaves(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, has := x.waves[namespace]
	return has
}

// Written records the state that one write has led to, as an event of a watch shows it. A state that is older than the known one is dropped.
func (x *Index) Written(w *workload.Workload) { x.observe(w, true, w.Version) }

// Listed is like Written, for a state from a list, the result of writes since a resourceVersion, which is empty for the first list: then unknown.
func (x *Index) Listed(w *workload.Workload, since string) { x.observe(w, false, since) }

// observe records a state of a workload, which is the result of one write if exact. What differs from the known state was written at since or later.
func (x *Index) observe(w *workload.Workload, exact bool, since string) {
	x.update(w.Key(), exact, func(known *workload.Workload) (*workload.Workload, string) {
		if known != nil && known.ID.UID == w.ID.UID && !events.Newer(w.Version, known.Version) {
			return nil, ""
		}
		return w, since
	})
}

// Answer records the state in the response to a patch, which sets the pod template if templated, unless the workload was deleted meanwhile.
func (x *Index) Answer(w *workload.Workload, templated bool) {
	x.update(w.Key(), templated, func(known *workload.Workload) (*workload.Workload, string) {
		if known == nil || known.ID.UID != w.ID.UID || !events.Newer(w.Version, known.Version) {
			return nil, ""
		}
		return w, known.Version // The response may include what others have written since.
	})
}

// Keep replaces the known state of a workload by one that keeps what could not be written on it, unless that is nil.
func (x *Index) Keep(key workload.Key, keeping func(known *workload.Workload) *workload.Workload) {
	x.update(key, false, func(known *workload.Workload) (*workload.Workload, string) {
		if known == nil {
			return nil, ""
		}
		return keeping(known), known.Version
	})
}

// Uncount removes from the count of a workload a roll that did not happen. Stripped is the state that still counts it, before the correction: the
// watch may have shown it, and a count that someone removes is usually kept nevertheless. Before is the state before the roll.
func (x *Index) Uncount(stripped, before *workload.Workload) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known := x.workloads[stripped.Key()]; known != nil && known.ID.UID == stripped.ID.UID {
		x.workloads[stripped.Key()] = known.Uncounting(stripped, before)
	}
}

// changedIn has all workloads of a namespace reviewed.
func (x *Index) changedIn(namespace string) {
	for _, w := range x.All() {
		if w.ID.Namespace == namespace {
			x.options.Changes.WorkloadChanged(w.Key())
		}
	}
}

// update replaces the known state of a workload, nil if there is none, by the one that next returns, unless that is nil. The new state is the result
// of one write if exact. What differs from the known one was written at the resourceVersion that next returns, or later.
func (x *Index) update(key workload.Key, exact bool, next func(known *workload.Workload) (w *workload.Workload, since string)) {
	x.mu.Lock()
	earlier := x.workloads[key]
	w, since := next(earlier)
	if w == nil {
		x.mu.Unlock()
		return
	}
	w = x.joined(x.settled(w)).After(earlier, exact)
	relinks := w.LinkAfter(earlier, since)
	x.replace(earlier, w)
	x.mu.Unlock()
	x.options.Changes.WorkloadChanged(key)
	if relinks {
		x.options.Changes.WorkloadRelinked(key)
	}
	x.rejoin(earlier, w, since)
}

// Forget removes a workload that was deleted, and was there until a resourceVersion or later, which is empty if that is not known.
func (x *Index) Forget(key workload.Key, uid, since string) {
	x.mu.Lock()
	earlier := x.workloads[key]
	if earlier == nil || earlier.ID.UID != uid {
		x.mu.Unlock()
		return
	}
	x.remove(earlier)
	x.mu.Unlock()
	x.options.Changes.WorkloadChanged(key)
	x.rejoin(earlier, nil, since)
}

// Place is where a kind is listed. An empty namespace is all of them.
type Place struct{ Kind, Namespace string }
