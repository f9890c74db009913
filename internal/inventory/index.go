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

// Index contains the workloads, and finds those that a source may concern, without a request to the API server. It is safe for concurrent use.
type Index struct {
	// options contains the callbacks, which are called without the lock after a workload has changed.
	options Options

	mu        sync.RWMutex
	workloads map[workload.Key]*workload.Workload
	bySource  links[events.Source]
	// runners maps a workload, which need not exist, to the workloads that run pods of its template or that it controls.
	runners links[workload.Key]
	// byPattern contains the workloads that name sources by a pattern, by namespace. Secrets in stores have the namespace "".
	byPattern links[string]
	// waves contains the workloads with a wave other than 0, by namespace.
	waves links[string]
	// unserved contains the kinds that the API server does not serve, and since when that is known.
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

// known returns the known state of an object's workload, nil if there is none, and whether it was read from this very version of the object.
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

// Dependents lists the workloads that a source may concern, in no order. Its cost is proportional to their number.
func (x *Index) Dependents(source events.Source) []*workload.Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found []*workload.Workload
	var readers []linked
	isFound := func(key workload.Key) bool {
		return slices.ContainsFunc(readers, func(of linked) bool { return of.has(key) })
	}
	for _, name := range workload.Spellings(source) {
		of := x.bySource[workload.SourceNamed(source.Kind, source.Namespace, name)]
		for key := range of.all() {
			if !isFound(key) {
				found = append(found, x.workloads[key])
			}
		}
		readers = append(readers, of)
	}
	for key := range x.byPattern[source.Namespace].all() {
		if w := x.workloads[key]; w.OptIn.HasPatterns(source.Kind) && !isFound(key) {
			found = append(found, w)
		}
	}
	return found
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

// Reverted counts, by kind, the workloads that are not rolled for a change any more because other clients reverted more than most rolls for it.
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

// HasAny reports whether a namespace has any workload. If there is none, it looks at every workload.
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

// HasWaves reports whether a workload of a namespace has a wave.
func (x *Index) HasWaves(namespace string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, has := x.waves[namespace]
	return has
}

// replace replaces the index entries of an earlier state, which may be nil. Most writes change none of them.
func (x *Index) replace(earlier, w *workload.Workload) {
	if earlier != nil && w.IsFoundAs(earlier) {
		x.workloads[w.Key()] = w
		return
	}
	x.remove(earlier)
	x.add(w)
}

func (x *Index) add(w *workload.Workload) {
	key := w.Key()
	x.workloads[key] = w
	if w.Wave != 0 {
		x.waves.add(key.Namespace, key)
	}
	if through := w.Through(); through != (workload.Key{}) {
		x.runners.add(through, key)
	}
	if w.OptIn.Empty() {
		return
	}
	for _, source := range w.Sources() {
		x.bySource.add(source, key)
	}
	for _, kind := range events.SourceKinds() {
		if w.OptIn.HasPatterns(kind) {
			x.byPattern.add(workload.SourceNamed(kind, key.Namespace, "").Namespace, key)
		}
	}
}

func (x *Index) remove(w *workload.Workload) {
	if w == nil {
		return
	}
	key := w.Key()
	delete(x.workloads, key)
	x.waves.remove(key.Namespace, key)
	x.runners.remove(w.Through(), key)
	for _, source := range w.Sources() {
		x.bySource.remove(source, key)
	}
	for _, namespace := range []string{key.Namespace, ""} {
		x.byPattern.remove(namespace, key)
	}
}

// Place is a kind in a namespace, or in all namespaces if Namespace is empty.
type Place struct{ Kind, Namespace string }
