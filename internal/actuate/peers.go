package actuate

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// failedPeers has the workloads whose last rollout failed and that have not recovered. Their marks say the same to the next leader.
type failedPeers struct {
	keys map[workload.Key]*failure
	// replaced has the changes that are suspect because of a rollout that somebody has replaced by another pod template, which says nothing about
	// them. They are kept until the last roll of the workload is complete.
	replaced map[workload.Key]map[string]workload.RolledFor
}

// failure is a rollout that has failed, and the outcome that says so.
type failure struct {
	*rollout
	outcome events.Outcome
}

// has reports whether a workload has failed and not recovered.
func (f *failedPeers) has(key workload.Key) bool { return f.keys[key] != nil }

// add adds a rollout that has failed.
func (f *failedPeers) add(r *rollout, outcome events.Outcome) {
	r.unready()
	f.keys[workload.KeyOf(outcome.Workload)] = &failure{r, outcome}
}

// blamed returns the changes of which one may be why the rollout failed.
func (f *failure) blamed() map[string]workload.RolledFor {
	if f.rolled == nil {
		return nil
	}
	return f.rolled.Blamed()
}

// suspects returns the changes for which a workload has failed.
func (f *failedPeers) suspects(key workload.Key) map[string]workload.RolledFor {
	if failed := f.keys[key]; failed != nil {
		return failed.blamed()
	}
	return f.replaced[key]
}

// suspect adds the changes of a rollout that was replaced.
func (f *failedPeers) suspect(key workload.Key, changes map[string]workload.RolledFor) {
	if len(changes) > 0 {
		f.replaced[key] = changes
	}
}

// clear drops the changes of a rollout that was replaced, once the last roll of the workload is complete, or it is gone: then w is nil.
func (f *failedPeers) clear(key workload.Key, w *workload.Workload) {
	if w == nil || w.AtLast() && w.Progress.State == workload.Complete {
		delete(f.replaced, key)
	}
}

// in returns the workloads of a namespace because of which changes are suspect.
func (f *failedPeers) in(namespace string) []workload.Key {
	var keys []workload.Key
	for key := range f.keys {
		if key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	for key := range f.replaced {
		if key.Namespace == namespace && !f.has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}
