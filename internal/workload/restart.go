package workload

import "time"

// annotationRolloutStrategy, on a Rollout, is Reloader's: "restart" has its pods replaced without a change of the template.
const annotationRolloutStrategy = "reloader.stakater.com/rollout-strategy"

// annotatingOrRestarting replaces the pods of a Rollout by annotations on the pod template, or has its controller restart them. The annotations are
// then on the Rollout itself.
var annotatingOrRestarting = strategy{
	change: func(w *Workload, template string, m mark) []operation {
		if !w.restarts {
			return annotating.change(w, template, m)
		}
		const path = "/spec/restartAt"
		var held any
		if w.restartAt != "" {
			held = w.restartAt
		}
		restart := []operation{test(path, held), add(path, nextRestart(w.restartAt, m.at))}
		return append(restart, annotate("/metadata/annotations", w.stored.metaTraced, m)...)
	},
	revision: func(p parts) string {
		switch {
		case !p.restarts:
			return annotating.revision(p)
		case p.restartAt == "": // Someone has called it off.
			return ""
		}
		return p.meta.Annotations[annotationRevision]
	},
}

// nextRestart returns the time before which no pod may have been created for it to have the content of a change. It is of whole seconds, as the
// creation times of pods are, and later than the time that is held: otherwise no pod would be replaced.
func nextRestart(held string, change time.Time) string {
	next := change.Add(time.Second - time.Nanosecond).Truncate(time.Second)
	if last, err := time.Parse(time.RFC3339, held); err == nil && !next.After(last) {
		next = last.Add(time.Second)
	}
	return next.UTC().Format(time.RFC3339)
}

// isRestarted reports whether no restart is left to do.
func isRestarted(wanted, done string) bool {
	want, err := time.Parse(time.RFC3339, wanted)
	if err != nil {
		return true // There was none.
	}
	last, err := time.Parse(time.RFC3339, done)
	return err == nil && !last.Before(want)
}
