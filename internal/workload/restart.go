package workload

import (
	"slices"
	"time"
)

// annotationRolloutStrategy, on a Rollout, is an annotation of Reloader. With "restart", pods are replaced without a change of the template.
const annotationRolloutStrategy = "reloader.stakater.com/rollout-strategy"

// restartDelay is how long after a write pods are restarted. Times have whole seconds, so a pod created in the same second may be older
// than the write.
const restartDelay = time.Second

// annotatingOrRestarting replaces the pods of a Rollout by annotations on the pod template, or by a restart. With a restart, the annotations are
// on the Rollout itself.
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
			ofRestart = "" // Someone has cancelled it.
		}
		// Switching between the two ways does not undo the last roll. The record tells which way that was.
		recorded := revisionOf(p.meta.Annotations[annotationRolled], p.meta.Annotations[annotationReverted])
		if ofTemplate == recorded || !p.restarts && ofRestart != recorded {
			return ofTemplate
		}
		return ofRestart
	},
}

// Restarts reports whether a roll restarts the pods and leaves the template as it is.
func (w *Workload) Restarts() bool { return w.restarts }

// nextRestart returns the spec.restartAt for a change that pods read if they start at readFrom or later. The controller replaces the pods
// that were created before restartAt, once that time has come. Creation times are written by the API server in whole seconds, so restartAt is
// by the API server's clock, too: it is after the newest write of the Rollout, whose status has been written since its pods became available.
// It is also later than the current restartAt: otherwise no pod would be replaced.
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

// readFrom returns the first whole second from which pods start with the change.
func (c Change) readFrom() time.Time {
	if c.Written.IsZero() {
		return c.At.Add(time.Second - time.Nanosecond).Truncate(time.Second)
	}
	return c.Written.Truncate(time.Second).Add(restartDelay)
}

// isRestarted reports whether no restart is outstanding.
func isRestarted(wanted, done string) bool {
	want, err := time.Parse(time.RFC3339, wanted)
	if err != nil {
		return true // There was none.
	}
	last, err := time.Parse(time.RFC3339, done)
	return err == nil && !last.Before(want)
}
