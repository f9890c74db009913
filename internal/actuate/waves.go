package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// waves has the workloads of a lower wave finish first with a change of a source.
type waves struct {
	index *index
	// unfinished report whether a workload is not finished with a change of a source: because it is pending, being patched, or
	// being rolled out.
	unfinished []func(workload.Key, events.Source) bool
}

// stop reports whether a workload must wait, because one of a lower wave is not finished with a change of the source.
func (v *waves) stop(w *workload.Workload, source events.Source) bool {
	if !v.index.hasWaves() {
		return false
	}
	for _, peer := range v.index.dependents(source) {
		if peer.Wave >= w.Wave {
			continue
		}
		for _, unfinished := range v.unfinished {
			if unfinished(peer.Key(), source) {
				return true
			}
		}
	}
	return false
}
