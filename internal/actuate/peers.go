package actuate

import (
	"maps"
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
	// good has the record that each workload had when it was last rolled while all of its pods were ready: none of those changes is why it failed. It
	// has only workloads that this actuator rolled in that state.
	good map[workload.Key]map[string]workload.RolledFor
}

// failure describes what a workload was rolled for when its rollout failed: its record without the changes with which it was ready before.
type failure struct {
	revision string
	rolled   map[string]workload.RolledFor
	// outcome is how its rollout ended, if known. own says that this actuator has started the rollout.
	outcome events.Outcome
	own     bool
	// ready is since when its pods have been ready, if they must stay ready before others go. It is zero if they are not ready, or need not be.
	ready time.Time
}

func newFailedPeers(index *inventory.Index) *failedPeers {
	return &failedPeers{
		index: index, keys: make(map[workload.Key]failure), byChange: make(map[sourceChange]map[workload.Key]struct{}),
		good: make(map[workload.Key]map[string]workload.RolledFor),
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

// begin records that a workload is about to be rolled. Followed says that this supersedes an earlier rollout that is not over.
func (f *failedPeers) begin(w *workload.Workload, followed bool) {
	if w.Progress.State == workload.Complete && !followed && !f.has(w.Key()) {
		f.good[w.Key()] = w.Rolled
	}
}

// add adds a workload whose rollout has failed.
func (f *failedPeers) add(key workload.Key) {
	f.remove(key)
	f.keys[key] = failure{}
	w := f.index.Get(key)
	if w == nil {
		return
	}
	suspect := maps.Clone(w.Rolled)
	maps.DeleteFunc(suspect, func(source string, change workload.RolledFor) bool {
		good, ready := f.good[key][source]
		return ready && good.SameChange(change)
	})
	f.keys[key] = failure{revision: w.Revision, rolled: suspect}
	for source, change := range suspect {
		of := sourceChangeOf(key.Namespace, source, change)
		if f.byChange[of] == nil {
			f.byChange[of] = make(map[workload.Key]struct{})
		}
		f.byChange[of][key] = struct{}{}
	}
}

// addFor adds the workload of an outcome that says why its rollout has failed. Own says that this actuator has started the rollout.
func (f *failedPeers) addFor(outcome events.Outcome, own bool) {
	key := workload.KeyOf(outcome.Workload)
	f.add(key)
	failed := f.keys[key]
	failed.outcome, failed.own = outcome, own
	f.keys[key] = failed
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
	for source, change := range f.keys[key].rolled {
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
	if w == nil {
		delete(f.good, key)
	}
	failed, ok := f.keys[key]
	complete := w != nil && w.Revision == failed.revision && w.Progress.State == workload.Complete
	if ok && bakes && w != nil && w.Revision == failed.revision {
		complete = f.bake(key, w, now)
	}
	if !ok || w != nil && w.Revision == failed.revision && !complete {
		return nil, false
	}
	f.remove(key)
	if complete {
		return nil, true
	}
	return failed.rolled, true
}

// resume adds the workloads that had failed before this actuator led.
func (f *failedPeers) resume() {
	for _, w := range f.index.All() {
		if w.Progress.State == workload.Failed && w.Revision != "" {
			f.add(w.Key())
		}
	}
}

// resumeOutcome adds a workload if its last outcome says that its rollout failed. Only Deployments and Rollouts have a status that says so. The
// next review shows whether it has recovered since. If its rollout was complete, any later failure is that of another rollout, by its owner.
func (f *failedPeers) resumeOutcome(last events.Outcome) {
	w := f.index.Get(workload.KeyOf(last.Workload))
	switch {
	case w == nil || w.ID.UID != last.Workload.UID || w.Revision != last.Revision:
	case failsPeers(last):
		f.addFor(last, false)
	case last.Verb == events.VerbCompleted:
		f.remove(w.Key())
	}
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
