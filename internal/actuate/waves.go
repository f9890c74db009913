package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// waves has the workloads of a lower wave finish first with a change of a source.
type waves struct {
	index *index
	// unfinished reports whether a workload is not finished with a change of a source: see unfinished.
	unfinished func(workload.Key, events.Source) bool
}

// unfinished returns a function that reports whether a workload is not finished with a change of a source: because it is pending, being
// patched, or being rolled out. One whose rollout was aborted waits for people, who may take for ever.
func unfinished(gathering *debounce, patcher *patcher, following *following) func(workload.Key, events.Source) bool {
	return func(key workload.Key, source events.Source) bool {
		waits := gathering.gathers(key, source) || following.isAborted(key)
		return gathering.has(key, source) && !waits || patcher.has(key, source) || following.isUnfinished(key, source)
	}
}

// stop returns a workload of a lower wave that is not finished with a change of the source, for which this one must wait. Nil: there is none.
func (v *waves) stop(w *workload.Workload, source events.Source) *workload.Workload {
	if !v.index.hasWaves() {
		return nil
	}
	for _, peer := range v.index.dependents(source) {
		if peer.Wave < w.Wave && v.unfinished(peer.Key(), source) {
			return peer
		}
	}
	return nil
}
