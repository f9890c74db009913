package workload

import (
	"slices"
	"time"
)

// annotationRolloutStrategy, on a Rollout, is Reloader's: "restart" has its pods replaced without a change of the template.
const annotationRolloutStrategy = "reloader.stakater.com/rollout-strategy"

// restartDelay is how long after a write pods are restarted: times are of whole seconds, so that a pod of the same second may be older.
const restartDelay = time.Second

// annotatingOrRestarting replaces the pods of a Rollout by annotations on the pod template, or has its controller restart them. The annotations are
// then on the Rollout itself.
var annotatingOrRestarting = strategy{
	change: func(w *Workload, template string, m mark) []operation {
		if !w.restarts {
			return slices.Concat(w.unaborted, annotating.change(w, template, m))
		}
		const path = "/spec/restartAt"
		var held any
		if w.restartAt != "" {
			held = w.restartAt
		}
		restart := []operation{test(path, held), add(path, w.nextRestart(m.readFrom))}
		return append(restart, annotate("/metadata/annotations", w.stored.metaTraced, m)...)
	},
	revision: func(p parts) string {
		ofTemplate, ofRestart := annotating.revision(p), p.meta.Annotations[annotationRevision]
		if p.restartAt == "" {
			ofRestart = "" // Someone has called it off.
		}
		// Whoever asks for the other way has not taken back what was rolled in this one: the record says which it was.
		recorded := revisionOf(p.meta.Annotations[annotationRolled], p.meta.Annotations[annotationReverted])
		if ofTemplate == recorded || !p.restarts && ofRestart != recorded {
			return ofTemplate
		}
		return ofRestart
	},
}

// nextRestart returns the spec.restartAt for a change that pods read from a time on: pods that were created before it are replaced. The
// controller compares it with the creation times of pods, which the API server writes in whole seconds, and restarts none before it has come.
// So it is by the API server's clock, after the newest write of the Rollout: its status has been written since its pods became available. And
// it is later than the time that is held: otherwise no pod would be replaced.
func (w *Workload) nextRestart(readFrom time.Time) string {
	next := readFrom
	if after := w.touched.Add(restartDelay); next.Before(after) {
		next = after
	}
	if held, err := time.Parse(time.RFC3339, w.restartAt); err == nil && !next.After(held) {
		next = held.Add(time.Second)
	}
	return next.UTC().Format(time.RFC3339)
}

// readFrom returns the full second from which on pods start with the change.
func (c Change) readFrom() time.Time {
	if c.Written.IsZero() {
		return c.At.Add(time.Second - time.Nanosecond).Truncate(time.Second)
	}
	return c.Written.Truncate(time.Second).Add(restartDelay)
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
