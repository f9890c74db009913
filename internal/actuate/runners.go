package actuate

import (
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
		runners = append(runners, x.workloads[key])
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

// acyclic returns a workload that is not rolled through itself: of owners that are each other's, the one that is seen last is nobody's. Call it with
// the lock.
func (x *index) acyclic(w *workload.Workload) *workload.Workload {
	for at := w.Runs; at != (workload.Key{}); {
		if at == w.Key() {
			return w.Unowned()
		}
		next := x.workloads[at]
		if next == nil {
			break
		}
		at = next.Runs
	}
	return w
}
