package actuate

import (
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// waves lets the workloads of a lower wave finish first with a change of a source. The waves of a namespace hold no workload of another.
type waves struct {
	index *inventory.Index
	// unfinished reports whether a workload is not finished with a change of a source: see unfinished. Returns is when one that is finished may not
	// be any more without anybody saying so, zero if there is no such time.
	unfinished func(workload.Key, events.Source) bool
	returns    func(workload.Key, events.Source) time.Time
	now        func() time.Time
	// orders have the workloads of a namespace that depend on a source, and in has the orders that a workload is in. They are made when somebody
	// asks.
	orders map[namespaceSource]*waveOrder
	in     map[workload.Key][]namespaceSource
}

// namespaceSource is a source as the workloads of one namespace read it.
type namespaceSource struct {
	namespace string
	source    events.Source
}

func newWaves(
	index *inventory.Index, unfinished func(workload.Key, events.Source) bool, returns func(workload.Key, events.Source) time.Time,
	now func() time.Time,
) *waves {
	v := &waves{index: index, unfinished: unfinished, returns: returns, now: now}
	v.forget()
	return v
}

// begun returns a function that reports whether a workload is being patched, or rolled out, for a change of a source.
func begun(patcher *patcher, following *following) func(workload.Key, events.Source) bool {
	return func(key workload.Key, source events.Source) bool {
		return patcher.has(key, source) && !patcher.patching(key).refused || following.isUnfinished(key, source)
	}
}

// unfinished returns a function that reports whether a workload is not finished with a change of a source, because the change is pending, or its
// patch or rollout has begun. Workloads that would hold up others for too long do not count. One that is on hold, or whose rollout was aborted or
// stays half way, waits for people, possibly forever, and so does one whose patch is refused. One whose windows are closed, or that was rolled
// recently, waits longer than others should, and does so again and again if a source changes all the time.
func unfinished(
	debounce *debounce, following *following, timing *timing, begun func(workload.Key, events.Source) bool,
) func(workload.Key, events.Source) bool {
	return func(key workload.Key, source events.Source) bool {
		if begun(key, source) {
			return true
		}
		if !debounce.has(key, source) || debounce.isHeldFor(key, plan.SourceOnHold) || timing.stops(key) || following.isAborted(key) {
			return false
		}
		p := debounce.byKey[key]
		return !p.refused && (!p.isReported(plan.PodsStarting) || !following.waits(key))
	}
}

// returns returns a function that returns when a workload that is finished may be unfinished again: when a window, an interval or the like lets it
// be rolled for a change of a source, or its rollout goes on. It is zero if that does not depend on time.
func returns(
	index *inventory.Index, debounce *debounce, following *following, timing *timing, now func() time.Time,
) func(workload.Key, events.Source) time.Time {
	return func(key workload.Key, source events.Source) time.Time {
		w := index.Get(key)
		if w == nil {
			return time.Time{}
		}
		var at time.Time
		pending := debounce.has(key, source)
		if (pending || following.has(key, source)) && now().Before(w.Progress.NotBefore) {
			at = w.Progress.NotBefore
		}
		if !pending {
			return at
		}
		if goes := timing.mayGo(w); at.IsZero() || !goes.IsZero() && goes.Before(at) {
			at = goes
		}
		return at
	}
}

// forget makes all workloads be checked again.
func (v *waves) forget() {
	v.orders, v.in = make(map[namespaceSource]*waveOrder), make(map[workload.Key][]namespaceSource)
}

// review makes a workload that may be unfinished be checked again.
func (v *waves) review(key workload.Key) {
	for _, of := range v.in[key] {
		o := v.orders[of]
		o.reopen(o.place[key])
	}
}

// stop returns a workload of a lower wave that is not finished with a change of the source, so that this one must wait for it, or nil if there is
// none.
func (v *waves) stop(w *workload.Workload, source events.Source) *workload.Workload {
	if !v.index.HasWaves(w.ID.Namespace) {
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
	o.advance(v.now())
	for {
		key, ok := o.first()
		if !ok {
			return nil
		}
		// In this order: a time that comes between the two makes it unfinished.
		until := v.returns(key, of.source)
		if w := v.index.Get(key); w != nil && v.unfinished(key, of.source) {
			return w
		}
		o.pass(until)
	}
}

// order returns the workloads of a namespace that depend on a source.
func (v *waves) order(of namespaceSource) *waveOrder {
	links := v.index.CountLinks(of.namespace)
	o := v.orders[of]
	if o != nil && o.links == links {
		return o
	}
	if o != nil {
		for _, key := range o.keys {
			v.in[key] = slices.DeleteFunc(v.in[key], func(other namespaceSource) bool { return other == of })
		}
	}
	dependents := slices.DeleteFunc(v.index.Dependents(of.source), func(w *workload.Workload) bool { return w.ID.Namespace != of.namespace })
	o = newWaveOrder(dependents, links)
	for _, key := range o.keys {
		v.in[key] = append(v.in[key], of)
	}
	v.orders[of] = o
	return o
}
