package actuate

import (
	"cmp"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// waves has the workloads of a lower wave finish first with a change of a source. The waves of a namespace hold no workload of another.
type waves struct {
	index *index
	// unfinished reports whether a workload is not finished with a change of a source: see unfinished. Returns reports whether one that is finished
	// may not be when time has passed, of which nobody tells.
	unfinished, returns func(workload.Key, events.Source) bool
	// orders have the workloads of a namespace that depend on a source, and in has the orders that a workload is in. They are made when somebody
	// asks, of what the index had when its links were counted last.
	orders map[namespaceSource]*waveOrder
	in     map[workload.Key][]namespaceSource
	links  uint64
}

// namespaceSource is a source as the workloads of one namespace read it.
type namespaceSource struct {
	namespace string
	source    events.Source
}

// waveOrder has the workloads that depend on a source, those of the lowest wave first. All before next are finished with the source until somebody
// tells. So a change of a source that many workloads read looks at each of them once, and not at all of them whenever one is finished.
type waveOrder struct {
	keys  []workload.Key
	place map[workload.Key]int
	next  int
}

func newWaves(index *index, unfinished, returns func(workload.Key, events.Source) bool) *waves {
	v := &waves{index: index, unfinished: unfinished, returns: returns}
	v.forget()
	return v
}

// begun returns a function that reports whether a workload is being patched, or rolled out, for a change of a source.
func begun(patcher *patcher, following *following) func(workload.Key, events.Source) bool {
	return func(key workload.Key, source events.Source) bool {
		return patcher.has(key, source) || following.isUnfinished(key, source)
	}
}

// unfinished returns a function that reports whether a workload is not finished with a change of a source: because it is pending, or that has
// begun. One that is on hold, or whose rollout was aborted, waits for people, who may take for ever; one whose windows are closed, or that was rolled
// recently, for longer than others should, and for a source that changes all the time again and again.
func unfinished(
	gathering *debounce, following *following, timing *timing, begun func(workload.Key, events.Source) bool,
) func(workload.Key, events.Source) bool {
	return func(key workload.Key, source events.Source) bool {
		if begun(key, source) {
			return true
		}
		return gathering.has(key, source) && !gathering.isHeldFor(key, plan.SourceOnHold) && !timing.stops(key) && !following.isAborted(key)
	}
}

// returns returns a function that reports whether a workload may be unfinished again when time has passed: because a window, an interval or the like
// keeps it from being rolled for a change of a source, or its rollout from going on.
func returns(gathering *debounce, following *following, timing *timing) func(workload.Key, events.Source) bool {
	return func(key workload.Key, source events.Source) bool {
		return following.has(key, source) || gathering.has(key, source) && timing.stopsUntil(key)
	}
}

// forget has all workloads looked at again.
func (v *waves) forget() {
	v.orders, v.in = make(map[namespaceSource]*waveOrder), make(map[workload.Key][]namespaceSource)
}

// review looks at a workload that may be unfinished again.
func (v *waves) review(key workload.Key) {
	for _, of := range v.in[key] {
		o := v.orders[of]
		if at := o.place[key]; at < o.next && v.unfinished(key, of.source) {
			o.next = at
		}
	}
}

// stop returns a workload of a lower wave that is not finished with a change of the source, for which this one must wait. Nil: there is none.
func (v *waves) stop(w *workload.Workload, source events.Source) *workload.Workload {
	if !v.index.hasWaves(w.ID.Namespace) {
		return nil
	}
	lowest := v.lowest(namespaceSource{w.ID.Namespace, source})
	if lowest == nil || lowest.Wave >= w.Wave {
		return nil
	}
	return lowest
}

// finished reports whether all lower waves of a namespace are finished with a source.
func (v *waves) finished(of awaited) bool {
	lowest := v.lowest(namespaceSource{of.namespace, of.source})
	return lowest == nil || lowest.Wave >= of.wave
}

// lowest returns the unfinished workload of the lowest wave, nil if there is none.
func (v *waves) lowest(of namespaceSource) *workload.Workload {
	o := v.order(of)
	for at := o.next; at < len(o.keys); at++ {
		key := o.keys[at]
		w := v.index.get(key)
		switch {
		case w != nil && v.unfinished(key, of.source):
			return w
		case o.next == at && (w == nil || !v.returns(key, of.source)):
			o.next++
		}
	}
	return nil
}

// order returns the workloads of a namespace that depend on a source.
func (v *waves) order(of namespaceSource) *waveOrder {
	if links := v.index.countLinks(); links != v.links {
		v.forget()
		v.links = links
	}
	if o := v.orders[of]; o != nil {
		return o
	}
	dependents := v.index.dependents(of.source)
	slices.SortFunc(dependents, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.ID.Kind, b.ID.Kind), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	o := &waveOrder{place: make(map[workload.Key]int)}
	for _, w := range dependents {
		if w.ID.Namespace != of.namespace {
			continue
		}
		key := w.Key()
		o.place[key] = len(o.keys)
		o.keys = append(o.keys, key)
		v.in[key] = append(v.in[key], of)
	}
	v.orders[of] = o
	return o
}
