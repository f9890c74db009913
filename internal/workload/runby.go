package workload

import (
	"maps"
	"time"
)

// RunBy returns w as it is while another workload runs the pods of its template, as a Rollout does whose workloadRef names a Deployment. The
// state of the other says how far its pods are, and the annotations of both count. A nil runner: no other does. It does not change w.
func (w *Workload) RunBy(runner *Workload) *Workload {
	alone := w
	if w.alone != nil {
		alone = w.alone
	}
	joined := *alone
	joined.Reverted = maps.Clone(alone.Reverted)
	if runner == nil {
		return &joined
	}
	joined.alone, joined.asked = alone, runner.Written
	joined.OptIn = alone.OptIn.and(runner.lent)
	if joined.Wave == 0 {
		joined.Wave = runner.Wave
	}
	joined.Progress, joined.ServingSince = runner.Progress, ""
	switch {
	case runner.observes < alone.Generation:
		joined.Progress = Progress{Pods: runner.Progress.Pods}.unobserved()
	case runner.ServingSince != "":
		// What it had pods of at an earlier time was maybe another template.
		joined.ServingSince = runner.Version
	}
	return &joined
}

// IsRun reports whether another workload runs the pods of the template.
func (w *Workload) IsRun() bool { return w.alone != nil }

// wantedBy returns a time by which the workload wanted what it wants.
func (w *Workload) wantedBy() time.Time {
	if w.asked.After(w.Written) {
		return w.asked
	}
	return w.Written
}
