package actuate

import "github.com/keyturn/keyturn/internal/workload"

// joined returns a workload with the state of the one that runs the pods of its template, if there is one. Call it with the lock.
func (x *index) joined(w *workload.Workload) *workload.Workload {
	runner := x.workloads[x.runners[w.Key()]]
	if runner == nil && !w.IsRun() {
		return w
	}
	return w.RunBy(runner)
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

// joinAnew has a workload take the state of the one that runs its pods, or its own if none does any more.
func (x *index) joinAnew(key workload.Key, since string) {
	x.mu.Lock()
	w := x.workloads[key]
	if _, run := x.runners[key]; w == nil || !run && !w.IsRun() {
		x.mu.Unlock()
		return
	}
	x.replace(w, w, false, since) // It unlocks.
}
