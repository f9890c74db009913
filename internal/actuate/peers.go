package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// failedPeers has the workloads whose last rollout failed and that have not recovered. They keep the others of their namespace from being
// rolled for the same change.
type failedPeers struct {
	index *inventory.Index
	keys  map[workload.Key]failure
	// byChange has the failed workloads that were rolled for a change.
	byChange map[sourceChange]map[workload.Key]struct{}
}

// failure is a rollout that has failed.
type failure struct {
	// outcome is how it ended. own says that this actuator has started it.
	outcome events.Outcome
	own     bool
	// blamed has the changes of which one may be why.
	blamed map[string]workload.RolledFor
	// ready is since when the pods have been ready, if they must stay ready before others go. It is zero if they are not ready, or need not be.
	ready time.Time
}

func newFailedPeers(index *inventory.Index) *failedPeers {
	return &failedPeers{
		index: index, keys: make(map[workload.Key]failure), byChange: make(map[sourceChange]map[workload.Key]struct{}),
	}
}

// stop returns a workload that was rolled for the same change and failed, so that this one must wait for it, or nil if there is none.
func (f *failedPeers) stop(w *workload.Workload, decision *plan.Decision) *workload.Workload {
	for key := range f.byChange[sourceChangeOf(w.ID.Namespace, decision.Source.String(), decision.Record)] {
		if peer := f.index.Get(key); peer != nil && key != w.Key() {
			return peer
		}
	}
	return nil
}

// has reports whether a workload has failed and not recovered.
func (f *failedPeers) has(key workload.Key) bool {
	_, failed := f.keys[key]
	return failed
}

// add adds a workload whose rollout has failed.
func (f *failedPeers) add(failed failure) {
	key := workload.KeyOf(failed.outcome.Workload)
	f.remove(key)
	f.keys[key] = failed
	for source, change := range failed.blamed {
		of := sourceChangeOf(key.Namespace, source, change)
		if f.byChange[of] == nil {
			f.byChange[of] = make(map[workload.Key]struct{})
		}
		f.byChange[of][key] = struct{}{}
	}
}

// lostPods reports whether the rollout failed because the pods were ready and did not stay so. They must stay ready before others go.
func (f failure) lostPods() bool { return f.outcome.Reason == reasonBakeFailed }

// bake observes a state of a workload whose pods must stay ready, and reports whether they have stayed ready for long enough.
func (f *failedPeers) bake(key workload.Key, w *workload.Workload, now time.Time) bool {
	failed := f.keys[key]
	switch {
	case w.Progress.State != workload.Complete:
		failed.ready = time.Time{}
	case failed.ready.IsZero():
		failed.ready = now
	}
	f.keys[key] = failed
	return !failed.ready.IsZero() && now.Sub(failed.ready) >= w.Bake()
}

func (f *failedPeers) remove(key workload.Key) {
	for source, change := range f.keys[key].blamed {
		of := sourceChangeOf(key.Namespace, source, change)
		delete(f.byChange[of], key)
		if len(f.byChange[of]) == 0 {
			delete(f.byChange, of)
		}
	}
	delete(f.keys, key)
}

// recovered reports whether a workload had failed and, by its state w, has recovered; w is nil if it is gone. It has recovered when its rollout is
// complete after all, and its pods have stayed ready if it bakes, or when the rollout was replaced by another. In the latter case, untested are the
// changes for which it is not known whether their content is good.
func (f *failedPeers) recovered(
	key workload.Key, w *workload.Workload, bakes bool, now time.Time,
) (untested map[string]workload.RolledFor, recovered bool) {
	failed, ok := f.keys[key]
	switch {
	case !ok:
		return nil, false
	case w == nil || w.Revision != failed.outcome.Revision:
		f.remove(key)
		return failed.blamed, true
	case bakes && !f.bake(key, w, now) || w.Progress.State != workload.Complete:
		return nil, false
	}
	f.remove(key)
	return nil, true
}

// failsPeers reports whether an outcome is a reason not to roll others for the same change.
func failsPeers(outcome events.Outcome) bool {
	if outcome.Verb != events.VerbFailed {
		return false
	}
	switch outcome.Reason {
	case reasonDeadlineExceeded, reasonAborted, reasonTimedOut, reasonBakeFailed:
		return true
	}
	return false
}
