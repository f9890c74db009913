package plan

import (
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// Gate says whether the annotations of a workload and its namespace, and the flags, allow a roll now. The zero value allows it.
type Gate struct {
	// Reason is why the workload must not be rolled now, or None if it may.
	Reason Reason
	// End is when this reason ends. It is zero if the reason does not end at a known time.
	End time.Time
	// Said is an explanation for users: the text of the hold, the windows, or how often the workload was rolled.
	Said string
	// Soon says that a window is open and only the workload's own moment in it has not come yet.
	Soon bool
	// Begins says that a pause begins that is not noted on the workload yet.
	Begins bool
	// IsTold says that the reason was reported before.
	IsTold bool
}

// GateOf returns the gate of a workload with the annotations of its namespace added (workload.Workload.In). Since is when the first change to roll
// for arrived. If it is zero, only a pause that is noted on the workload counts. No pause begins while someone has paused the Deployment itself.
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

// InPlace reports whether pods can be asked to reload, instead of being replaced, for the changes that roll a workload. If the workload opts in to
// reloads but one is not possible, why says so for users.
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
			return decision.Source.String() + " is on hold, and only new pods read it now", false // Only a rollout makes the pods newer.
		case decision.Reason == PodsNewer && w.IsReplacingPods():
			return "a change of the workload itself is replacing its pods", false // As above.
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
