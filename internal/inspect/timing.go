package inspect

import (
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// obstacle is what prevents a workload from being rolled now because people have configured it so, in its annotations or those of its namespace.
type obstacle struct {
	// reason is plan.None if there is no obstacle.
	reason plan.Reason
	// said describes the obstacle for people. It also says so if the workload was asked to roll now.
	said string
	// rollsNow says that the workload was asked to roll whatever holds it, and known that the annotations of its namespace could be read.
	rollsNow, known bool
}

// timing returns what prevents a workload from being rolled now.
func (r *report) timing(w *workload.Workload) obstacle {
	if w.RollsNow() {
		said := "It rolls for the next change whatever holds it: " + workload.AnnotationRollNow + " is set and has not been used."
		return obstacle{rollsNow: true, said: said}
	}
	gate := plan.GateOf(w, time.Time{}, r.now)
	return obstacle{reason: gate.Reason, said: r.gateText(gate)}
}

// gateText describes why a workload may not be rolled now. It is empty if it may.
func (r *report) gateText(gate plan.Gate) string {
	const orNow = "or once " + workload.AnnotationRollNow + " has another value."
	switch {
	case gate.Reason == plan.OnHold:
		return fmt.Sprintf("It is on hold: %s (%s). Its changes roll it once %s is removed, %s", gate.Said, gate.Reason, events.AnnotationHold, orNow)
	case gate.Reason == plan.WindowClosed && gate.End.IsZero():
		return fmt.Sprintf("It is not rolled: %s (%s). Fix that, or set %s.", gate.Said, gate.Reason, workload.AnnotationRollNow)
	case gate.Reason == plan.WindowClosed && gate.Soon:
		return fmt.Sprintf("Its window is open: %s. Workloads are rolled one after the other then, and this one from %s on, %s",
			gate.Said, r.coming(gate.End), orNow)
	case gate.Reason == plan.WindowClosed:
		return fmt.Sprintf("No window is open: %s (%s). It is rolled from %s on, %s", gate.Said, gate.Reason, r.coming(gate.End), orNow)
	case gate.Reason == plan.RolledRecently:
		return fmt.Sprintf("It was rolled recently (%s): its next roll begins at %s at the earliest, %s", gate.Reason, r.coming(gate.End), orNow)
	case gate.Reason == plan.RolledTooOften:
		return fmt.Sprintf("It was rolled too often: %s (%s). Its next roll begins at %s at the earliest, %s "+
			"Find what changes its sources or undoes its rollouts each time.", gate.Said, gate.Reason, r.coming(gate.End), orNow)
	case gate.Reason == plan.Pausing:
		return fmt.Sprintf("Its changes are collected (%s): it is rolled for them from %s on, %s", gate.Reason, r.coming(gate.End), orNow)
	}
	return ""
}
