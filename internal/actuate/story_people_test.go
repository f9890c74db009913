//go:build !race

package actuate_test

import (
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// These are the things that people, releases and the controllers of workloads do in a story.

// writeOn changes a workload as a program with this field manager does.
func (st *story) writeOn(manager string, w *storyWorkload, aspects ...aspect) {
	st.writeAs(manager, w.name, aspects...)
	w.sinceNews = 0
	st.reread(w, w.template.revision)
	st.look()
}

// toggles gives a workload an annotation, or removes it.
func (st *story) toggles(w *storyWorkload, key, value string) bool {
	if _, has := w.annotations[key]; has {
		st.notef("%s loses %s", w.name, key)
		st.writeOn("person", w, without(key))
		return true
	}
	st.notef("%s gets %s: %s", w.name, key, value)
	st.writeOn("person", w, annotated(key, value))
	return true
}

func (st *story) templateIsEdited() bool {
	w, name := oneOf(st, st.workloads...), "example.com/app:"+strconv.Itoa(st.random.IntN(4))
	st.notef("%s is released as %s", w.name, name)
	st.writeOn("helm", w, image(name))
	return true
}

func (st *story) workloadIsHeld() bool {
	return st.toggles(oneOf(st, st.workloads...), events.AnnotationHold, "tofu apply")
}

// workloadIsDelayed lets a workload roll only in a window that opens once in four years, or not soon after its last roll.
func (st *story) workloadIsDelayed() bool {
	w := oneOf(st, st.workloads...)
	if st.onceIn(2) {
		return st.toggles(w, workload.AnnotationWindow, "0 0 29 2 * for 1m")
	}
	return st.toggles(w, workload.AnnotationMinInterval, "1m")
}

func (st *story) workloadRollsNow() bool {
	w, value := oneOf(st, st.workloads...), strconv.Itoa(len(st.tale))
	st.notef("%s rolls now", w.name)
	st.writeOn("person", w, annotated(workload.AnnotationRollNow, value))
	return true
}

func (st *story) optInChanges() bool {
	w := oneOf(st, st.workloads...)
	st.writeOn("person", w, oneOf(st, optIns...))
	st.notef("%s wants %v", w.name, st.wanted(w))
	return true
}

func (st *story) waveChanges() bool {
	w, wave := oneOf(st, st.workloads...), st.random.IntN(3)
	st.notef("%s is in wave %d", w.name, wave)
	st.writeOn("person", w, inWave(wave))
	return true
}

// rolloutsStall keeps the next rollouts of a Deployment from making progress.
func (st *story) rolloutsStall() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.isDeployment && !w.stalled }, func(w *storyWorkload) {
		st.notef("rollouts of %s make no progress", w.name)
		st.stall(w.name)
		w.stalled, w.weak = true, true
	})
}

func (st *story) rolloutFails() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.stalled && len(w.running) > 1 }, func(w *storyWorkload) {
		st.notef("the rollout of %s fails", w.name)
		st.fail(w.name)
		st.look()
	})
}

func (st *story) rolloutIsCompleted() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.stalled && !w.operated }, st.complete)
}

// complete lets the rollouts of a workload end.
func (st *story) complete(w *storyWorkload) {
	st.notef("all pods of %s are of its template, and ready", w.name)
	w.stalled, w.running = false, []storyTemplate{w.template}
	st.finish(w.name)
	st.look()
}

func (st *story) podsFail() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.isDeployment && !w.stalled }, func(w *storyWorkload) {
		st.notef("the pod of %s is not ready", w.name)
		st.pods(w.name, 1, 0)
		w.weak = true
		st.look()
	})
}

func (st *story) rolloutIsPaused() bool {
	return st.toOne(func(w *storyWorkload) bool { return w.isDeployment }, func(w *storyWorkload) {
		st.pause(w, !w.paused)
	})
}

func (st *story) pause(w *storyWorkload, paused bool) {
	st.notef("%s is paused: %t", w.name, paused)
	w.paused, w.weak = paused, true
	st.alter(w.name, func(d *appsv1.Deployment) { d.Spec.Paused = paused })
	st.look()
}

// isKept keeps what a workload is, for an undo, and its record, for a manifest.
func (st *story) isKept() bool {
	w := oneOf(st, st.workloads...)
	st.notef("%s is kept as it is", w.name)
	st.keep(w)
	return true
}

func (st *story) keep(w *storyWorkload) {
	w.undo, w.kept, w.manifest = st.revisionOf(w.name), w.template, st.annotation(w.name, annotationRecord)
}

// isUndone has a person bring back what a workload was, as `kubectl rollout undo` does, which refuses a Deployment that is paused.
func (st *story) isUndone() bool {
	w := st.aWorkload(func(w *storyWorkload) bool {
		return w.undo != nil && w.kept != w.template && !w.paused && parse(w.name).kind != "cronjob"
	})
	if w == nil {
		return false
	}
	st.notef("a person undoes the last rollout of %s", w.name)
	isRoll := w.kept.revision != w.template.revision && w.kept.bare == w.template.bare
	// Who has removed an annotation is not known, so there must be an earlier one.
	isKnown := w.isComplete(st) || w.kept.revision != "" || w.isDeployment && w.manifest != ""
	isClear, was := isRoll && isKnown && st.isAtRest(w), w.annotations
	w.undo()
	w.stalled, w.sinceNews = false, 0
	w.foreign = w.foreign || w.isDeployment && w.manifest != w.text
	st.reread(w, w.kept.revision)
	w.undone = isClear && maps.Equal(was, w.annotations)
	st.look()
	return true
}

// isComplete reports whether the last rollout of a workload is complete.
func (w *storyWorkload) isComplete(st *story) bool {
	return !w.stalled && st.elapsed()-w.rolledAt > time.Minute
}

// isAtRest reports whether a workload has nothing that it waits for, its pods have stayed ready, and nothing has changed since they started.
func (st *story) isAtRest(w *storyWorkload) bool {
	for _, of := range st.sourcesOf(w) {
		pair := w.pairs[of]
		if st.wants(w, of) && (pair.owed || pair.gone || len(pair.since) > 1 || of.held || of.ignored) {
			return false
		}
	}
	return !w.ill && !w.denied && !w.slow && !st.unanswered && !st.silent
}

// slowPatch is how long patches take that are slow.
const slowPatch = 2 * time.Second

func (st *story) patchesAreSlow() bool {
	return st.toOne(func(w *storyWorkload) bool { return !w.slow }, func(w *storyWorkload) {
		st.notef("patches of %s take %s", w.name, slowPatch)
		st.patchesTake(w.name, slowPatch)
		w.slow = true
	})
}
