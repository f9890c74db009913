package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// failedPeers are the workloads whose last rollout failed and that have not recovered. They stop the others from being rolled for
// the same change.
type failedPeers struct {
	index *index
	// keys has the revision that each of them was rolled to.
	keys map[workload.Key]string
}

func newFailedPeers(index *index) *failedPeers {
	return &failedPeers{index: index, keys: make(map[workload.Key]string)}
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

// add takes a workload whose rollout has failed.
func (f *failedPeers) add(key workload.Key) {
	revision := ""
	if w := f.index.get(key); w != nil {
		revision = w.Revision
	}
	f.keys[key] = revision
}

// recovered reports whether a workload was failed and is no more, as its state w says; w is nil if it is gone. It has recovered when its
// rollout is complete after all, or when it was replaced by another.
func (f *failedPeers) recovered(key workload.Key, w *workload.Workload) bool {
	revision, ok := f.keys[key]
	if !ok || w != nil && w.Revision == revision && w.Progress.State != workload.Complete {
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

// resumeOutcome adds the workload of its last outcome, if that says that its rollout failed and it has not recovered since. Only a Deployment
// has a status that says so.
func (f *failedPeers) resumeOutcome(last events.Outcome) {
	w := f.index.get(workload.KeyOf(last.Workload))
	if w != nil && w.ID.UID == last.Workload.UID && w.Revision == last.Revision && w.Progress.State != workload.Complete && failsPeers(last) {
		f.add(w.Key())
	}
}

// failsPeers reports whether an outcome is a reason not to roll others for the same change.
func failsPeers(outcome events.Outcome) bool {
	return outcome.Verb == events.VerbFailed && (outcome.Reason == reasonDeadlineExceeded || outcome.Reason == reasonTimedOut)
}
