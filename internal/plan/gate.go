package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// Gate says whether people let a workload roll now, by annotations of it and its namespace, and flags. The zero value means that they do.
type Gate struct {
	// Reason is why it may not be rolled now, or None if it may.
	Reason Reason
	// End is from when on it may be rolled, as far as the reason goes. It is zero if no time ends that.
	End time.Time
	// Said is text for people: that of the hold, the windows, or how often it was rolled.
	Said string
	// Soon says that a window is open, and that only the workload's own moment within it has not come.
	Soon bool
	// Begins says that a pause begins that is not noted on the workload yet.
	Begins bool
	// IsTold says that it was reported before.
	IsTold bool
}

// GateOf returns the gate of a workload to which the annotations of its namespace have been added: see workload.Workload.In. Since is when the first
// of the changes came that are to roll it. It is zero if that is not known: then only a pause counts that is noted on the workload. None begins while
// someone has paused the Deployment itself.
func GateOf(w *workload.Workload, since, now time.Time) Gate {
	if w.RollsNow() {
		return Gate{}
	}
	if w.Hold != "" {
		return Gate{Reason: OnHold, Said: w.Hold}
	}
	at, opens := w.Opening(now)
	if !opens {
		return Gate{Reason: WindowClosed, Said: w.Windows()}
	}
	if !w.IsOpen(now) {
		return Gate{Reason: WindowClosed, Said: w.Windows(), End: at}
	}
	if end, waits := w.NextRoll(now); waits {
		return Gate{Reason: RolledRecently, End: end}
	}
	if end, rolls, too := w.TooOften(now); too {
		return Gate{Reason: RolledTooOften, Said: rolls, End: end}
	}
	if end, begins := w.Pause.Of(since, now); now.Before(end) && (!begins || !w.IsPausedBySomeone()) {
		return Gate{Reason: Pausing, End: end, Begins: begins}
	}
	if at.After(now) {
		return Gate{Reason: WindowClosed, Said: w.Windows(), End: at, Soon: true}
	}
	return Gate{}
}

// InPlace reports whether, for the changes that roll a workload, its pods can be asked to reload instead of being replaced. If the workload opts
// in to that but it is not possible, InPlace returns the reason as text for people.
func InPlace(w *workload.Workload, doing []Decision) (why string, ok bool) {
	switch {
	case w.InPlace == nil:
		return "", false
	case w.RollsNow():
		return workload.AnnotationRollNow + " asks for a rollout", false
	case w.IsRun():
		return "another workload runs its pods", false
	}
	for _, decision := range doing {
		switch {
		case decision.Reason == PodsNewer && decision.Hold != "":
			return decision.Source.String() + " is on hold, and only new pods read it now", false // They count as new, too.
		case decision.Reason == PodsNewer && w.IsReplacingPods():
			return "a change of the workload itself is replacing its pods", false // They count as new only because a roll was to replace them.
		case decision.Reason.Action() != Roll:
			continue
		case decision.Reason != Changed:
			return decision.Source.String() + ": " + decision.Reason.Sentence(), false
		case decision.Anew:
			return decision.Source.String() + " is another object than before", false
		}
		if why := w.InPlace.Refuses(decision.Source); why != "" {
			return why, false
		}
	}
	return "", true
}
