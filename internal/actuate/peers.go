package actuate

import (
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// failedPeers are the workloads whose last rollout failed and that have not recovered. They stop the others from being rolled for
// the same change.
type failedPeers struct {
	index *index
	keys  map[workload.Key]struct{}
}

func newFailedPeers(index *index) *failedPeers {
	return &failedPeers{index: index, keys: make(map[workload.Key]struct{})}
}

// stop reports whether a workload must wait, because another one was rolled for the same change and failed.
func (f *failedPeers) stop(w *workload.Workload, decision *plan.Decision) bool {
	for key := range f.keys {
		if key == w.Key() {
			continue
		}
		if peer := f.index.get(key); peer != nil && peer.Rolled[decision.Source.String()].SameChange(decision.Record) {
			return true
		}
	}
	return false
}

func (f *failedPeers) add(key workload.Key) { f.keys[key] = struct{}{} }

// recovered reports whether a workload was failed and is no more, as its state w says; w is nil if it is gone.
func (f *failedPeers) recovered(key workload.Key, w *workload.Workload) bool {
	if _, ok := f.keys[key]; !ok || w != nil && w.Progress.State == workload.Failed {
		return false
	}
	delete(f.keys, key)
	return true
}

// resume adds the workloads that had failed before this actuator led.
func (f *failedPeers) resume() {
	for _, w := range f.index.all() {
		if w.Progress.State == workload.Failed && w.Revision != "" {
			f.add(w.Key())
		}
	}
}
