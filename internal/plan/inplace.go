package plan

import "github.com/keyturn/keyturn/internal/workload"

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
		}
		if why := refusesInPlace(w, decision); why != "" {
			return why, false
		}
	}
	return "", true
}

func refusesInPlace(w *workload.Workload, decision Decision) string {
	switch {
	case decision.Reason != Changed && decision.Reason != ChangedMeanwhile:
		return decision.Source.String() + ": " + decision.Reason.Sentence()
	case decision.Anew:
		return decision.Source.String() + " is another object than before"
	}
	return w.InPlace.Refuses(decision.Source)
}
