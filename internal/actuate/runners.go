package actuate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// joined returns a workload with the state of those that run the pods of its template, if there are any. Call it with the lock.
func (x *index) joined(w *workload.Workload) *workload.Workload {
	keys := x.runners[w.Key()]
	if len(keys) == 0 && !w.IsRun() {
		return w
	}
	runners := make([]*workload.Workload, 0, len(keys))
	for key := range keys {
		if runner := x.workloads[key]; runner.Runs == w.Key() {
			runners = append(runners, runner)
		}
	}
	slices.SortFunc(runners, func(a, b *workload.Workload) int { return strings.Compare(a.ID.Name, b.ID.Name) })
	return w.RunBy(runners...)
}

// rejoin has the workloads whose pods another one runs, or has run until now, take its new state. Each of the two states is nil if it is none.
// Call it without the lock.
func (x *index) rejoin(earlier, w *workload.Workload, since string) {
	var before, now workload.Key
	if earlier != nil {
		before = earlier.Runs
	}
	if w != nil {
		now = w.Runs
	}
	if before != now {
		x.joinAnew(before, since)
	}
	x.joinAnew(now, since)
	if earlier == nil || w == nil || before != now {
		x.settleOwned(cmp.Or(w, earlier).Key(), since)
	}
}

// settleOwned has what a workload is the controller of be rolled through it while it is there, and by itself while it is not. Call it without the
// lock.
func (x *index) settleOwned(key workload.Key, since string) {
	x.mu.RLock()
	owned := slices.Collect(maps.Keys(x.runners[key]))
	x.mu.RUnlock()
	for _, key := range owned {
		x.mu.Lock()
		w := x.workloads[key]
		if w == nil || x.settled(w).Runs == w.Runs {
			x.mu.Unlock()
			continue
		}
		x.replace(w, w, false, since) // It unlocks.
	}
}

// joinAnew has a workload take the state of those that run its pods, or its own if none does any more.
func (x *index) joinAnew(key workload.Key, since string) {
	x.mu.Lock()
	w := x.workloads[key]
	if _, run := x.runners[key]; w == nil || !run && !w.IsRun() {
		x.mu.Unlock()
		return
	}
	x.replace(w, w, false, since) // It unlocks.
}

// settled returns a workload as it is rolled: through its controller, or by itself while that is not there. Of controllers that are each other's, the
// one that is seen last is nobody's. Call it with the lock.
func (x *index) settled(w *workload.Workload) *workload.Workload {
	if w.Owner == (workload.Key{}) {
		return w
	}
	at := w.Owner
	for range workload.MaxOwners {
		switch next := x.workloads[at]; {
		case at == w.Key() || next == nil:
			return w.Unowned()
		case next.Runs == (workload.Key{}):
			return w.Owned()
		default:
			at = next.Runs
		}
	}
	return w.Unowned()
}
