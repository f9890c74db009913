package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// waves has the workloads of a lower wave finish first with a change of a source. The waves of a namespace hold no workload of another.
type waves struct {
	index *index
	// unfinished reports whether a workload is not finished with a change of a source: see unfinished.
	unfinished func(workload.Key, events.Source) bool
	// lowest has the unfinished workload of the lowest wave, nil if there is none. It is looked for once for each dispatch, and again when that
	// one is finished, not for each workload that is held.
	lowest map[namespaceSource]*workload.Workload
}

// namespaceSource is a source as the workloads of one namespace read it.
type namespaceSource struct {
	namespace string
	source    events.Source
}

func newWaves(index *index, unfinished func(workload.Key, events.Source) bool) *waves {
	return &waves{index: index, unfinished: unfinished, lowest: make(map[namespaceSource]*workload.Workload)}
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

// forget has the lowest waves looked for again.
func (v *waves) forget() { clear(v.lowest) }

// stop returns a workload of a lower wave that is not finished with a change of the source, for which this one must wait. Nil: there is none.
func (v *waves) stop(w *workload.Workload, source events.Source) *workload.Workload {
	if !v.index.hasWaves(w.ID.Namespace) {
		return nil
	}
	of := namespaceSource{w.ID.Namespace, source}
	peer, known := v.lowest[of]
	if !known || peer != nil && !v.unfinished(peer.Key(), source) {
		peer = v.find(of)
		v.lowest[of] = peer
	}
	if peer == nil || peer.Wave >= w.Wave {
		return nil
	}
	return peer
}

// find returns the unfinished workload of the lowest wave, nil if there is none.
func (v *waves) find(of namespaceSource) *workload.Workload {
	var lowest *workload.Workload
	for _, peer := range v.index.dependents(of.source) {
		lower := peer.ID.Namespace == of.namespace && (lowest == nil || peer.Wave < lowest.Wave)
		if lower && v.unfinished(peer.Key(), of.source) {
			lowest = peer
		}
	}
	return lowest
}
