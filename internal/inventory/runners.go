package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/workload"
)

// joined returns a workload with the state of the workloads that run the pods of its template, if there are any. Call it with the lock.
func (x *Index) joined(w *workload.Workload) *workload.Workload {
	of, hasRunner := x.runners[w.Key()]
	if !hasRunner && !w.IsRun() {
		return w
	}
	var runners []*workload.Workload
	for key := range of.all() {
		if runner := x.workloads[key]; runner.Runs == w.Key() {
			runners = append(runners, runner)
		}
	}
	slices.SortFunc(runners, func(a, b *workload.Workload) int { return strings.Compare(a.ID.Name, b.ID.Name) })
	return w.RunBy(runners...)
}

// rejoin updates the workloads whose pods another one runs, or ran before. A state is nil if there is none. Call it without the lock.
func (x *Index) rejoin(earlier, w *workload.Workload, since string) {
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
	if earlier == nil || w == nil || before != now || earlier.Unserved != w.Unserved {
		x.settleOwned(cmp.Or(w, earlier).Key(), since)
	}
}

// settleOwned makes the workloads that a workload controls roll through it while it exists and its kind is served, and by themselves otherwise. Call
// it without the lock.
func (x *Index) settleOwned(key workload.Key, since string) {
	x.mu.RLock()
	owned := slices.Collect(x.runners[key].all())
	x.mu.RUnlock()
	for _, key := range owned {
		x.update(key, false, func(w *workload.Workload) (*workload.Workload, string) {
			if w == nil || x.settled(w).Runs == w.Runs {
				return nil, ""
			}
			return w, since
		})
	}
}

// joinAnew updates a workload with the state of the workloads that run its pods, or with its own if there are none any more.
func (x *Index) joinAnew(key workload.Key, since string) {
	x.update(key, false, func(w *workload.Workload) (*workload.Workload, string) {
		if _, hasRunner := x.runners[key]; w == nil || !hasRunner && !w.IsRun() {
			return nil, ""
		}
		return w, since
	})
}

// settled returns a workload as it is rolled: through its controller, or by itself if the controller does not exist or its kind is not served. If
// workloads control each other in a circle, the last one seen counts as having no controller. Call it with the lock.
func (x *Index) settled(w *workload.Workload) *workload.Workload {
	if w.Owner == (workload.Key{}) {
		return w
	}
	at := w.Owner
	for range workload.MaxOwners {
		switch next := x.workloads[at]; {
		case at == w.Key() || next == nil || next.Unserved:
			return w.Unowned()
		case next.Runs == (workload.Key{}):
			return w.Owned()
		default:
			at = next.Runs
		}
	}
	return w.Unowned()
}
