package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// refused is the action for a change whose patch is refused. The actuator retries the patch until it is accepted.
const refused = "refused"

// never contains the reasons with which no change of a source rolls the workload.
var never = []plan.Reason{plan.NotOptedIn, plan.Excluded, plan.SourceIgnored, plan.PulledOnly}

// noteWaiting adds that the rollout of a workload waits until someone continues it.
func (r *Report) noteWaiting(w *workload.Workload) {
	r.waits = w.Progress.State == workload.Waiting
	switch {
	case w.IsPausedBySomeone():
		r.noteState(plan.None, "It is paused (spec.paused) by someone else. Keyturn does not change that, and its rollouts wait.")
	case r.waits:
		why := strings.TrimRight(w.Progress.Message, ":. ")
		r.noteState(plan.None, "Its rollout waits: "+why+". Pods that are not replaced yet keep what they have read.")
	}
}

// notePending adds the sources with pending changes, what holds the workload, and when it rolls.
func (r *Report) notePending(timing obstacle) {
	isRefused := r.refuse()
	for _, row := range r.Sources {
		if row.isPending() {
			r.Pending = append(r.Pending, row.Source)
		}
	}
	held := timing.reason.String()
	if r.Held != nil {
		if r.Held.end(r.Sources, timing, r.now); r.Held.Over == "" {
			held = r.Held.Reason
		}
		r.noteHold(r.Held)
	}
	isHeldByDecision := slices.ContainsFunc(r.Sources, func(e explanation) bool { return e.Action == plan.Hold.String() })
	hears := slices.ContainsFunc(r.Sources, func(e explanation) bool { return !slices.Contains(never, e.decision.Reason) })
	pending := "Pending: " + strings.Join(r.Pending, ", ") + "."
	r.noteUnpublished()
	switch {
	case len(r.Pending) == 0 && !hears:
		r.noteState(plan.None, "Nothing is pending, and no change of these sources rolls it.")
	case len(r.Pending) == 0 && (timing.reason != plan.None || r.waits):
		r.note("Nothing is pending.")
	case len(r.Pending) == 0:
		r.note("Nothing is pending: it rolls at the next change.")
	case held != "" || isHeldByDecision:
		r.noteLines(pending)
	case isRefused:
		r.noteLines(pending + " The API server refuses the patch, which is tried again, in the end every ten minutes.")
	case r.isReverted():
		r.noteState(plan.Reverted, pending+" Another client has reverted the last rollout: it rolls again 1, 5 and 15 minutes after it was.")
	default:
		r.noteLines(pending + " Nothing is known to hold it: it rolls once the changes have settled, within seconds. If it does not, " +
			"look whether the actuator runs, and with the flags that were given here. " +
			"A change of before the workload asked for the source rolls nothing.")
	}
	// An obstacle of the workload holds each row that would roll it, because one roll is for all changes.
	for i := range r.Sources {
		if row := &r.Sources[i]; row.decision.Reason.Action() == plan.Roll {
			row.Held = held
		}
	}
}

// noteUnpublished adds the sources that the pods need but that have no event on the stream, so that their changes are unknown.
func (r *Report) noteUnpublished() {
	var names []string
	for _, row := range r.Sources {
		if row.required && row.decision.Reason == plan.Unknown {
			names = append(names, row.Source)
		}
	}
	if len(names) > 0 {
		r.noteLines("The stream has no event of " + strings.Join(names, ", ") + ", which the pods need. If it exists, no change of it " +
			"rolls anything until the watcher publishes it: its log says if it cannot.")
	}
}

// refuse marks the rows whose changes were in the last refused patch, and reports whether there are any.
func (r *Report) refuse() bool {
	if r.Last == nil || r.Last.Verb != events.VerbFailed || r.Last.Reason != events.ReasonPatchDenied {
		return false
	}
	isRefused := false
	for i := range r.Sources {
		row := &r.Sources[i]
		denied := slices.ContainsFunc(r.Last.Sources, func(s events.OutcomeSource) bool { return s.Source == row.Source && s.Event == row.Event })
		if denied && row.isPending() {
			row.Action, row.Reason = refused, r.Last.Reason
			row.Sentence = "the API server refuses the patch for this change; it is tried again until it is accepted"
			isRefused = true
		}
	}
	return isRefused
}

// isReverted reports whether the last rollout was reverted and will be repeated.
func (r *Report) isReverted() bool {
	return r.Last != nil && r.Last.Verb == events.VerbFailed && r.Last.Reason == plan.Reverted.String() &&
		slices.ContainsFunc(r.Last.Sources, func(s events.OutcomeSource) bool { return slices.Contains(r.Pending, s.Source) })
}

// timing returns the obstacle in time for a workload, if any.
func (r *Report) timing(w *workload.Workload) obstacle {
	if w.RollsNow() {
		said := "It rolls for the next change whatever holds it: " + workload.AnnotationRollNow + " is set and has not been used."
		return obstacle{rollsNow: true, said: said}
	}
	gate := plan.GateOf(w, time.Time{}, r.now)
	return obstacle{reason: gate.Reason, said: r.gateText(gate)}
}

// endless returns the obstacle of endless changes, or else the given one.
func (r *Report) endless(w *workload.Workload, timing obstacle) obstacle {
	if timing.reason != plan.None {
		return timing
	}
	decisions := make([]plan.Decision, 0, len(r.Sources))
	for _, row := range r.Sources {
		decisions = append(decisions, row.decision)
	}
	if gate := plan.GateOfChanges(w, decisions, r.now); gate.Reason != plan.None {
		timing.reason, timing.said = gate.Reason, r.gateText(gate)
		r.noteState(timing.reason, timing.said)
	}
	return timing
}

// gateText describes why a workload may not be rolled now. It is empty if it may be rolled.
func (r *Report) gateText(gate plan.Gate) string {
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
	case gate.Reason == plan.Endless:
		return fmt.Sprintf("It changes without end, and is rolled ever more seldom (%s): %s. Its next roll for that begins at %s at the earliest, %s",
			gate.Reason, gate.Said, r.coming(gate.End), orNow)
	case gate.Reason == plan.Pausing:
		return fmt.Sprintf("Its changes are collected (%s): it is rolled for them from %s on, %s", gate.Reason, r.coming(gate.End), orNow)
	}
	return ""
}
