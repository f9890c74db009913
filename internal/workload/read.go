package workload

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

// annotationWave, on a workload, is its wave: a whole number, 0 by default.
const annotationWave = "keyturn.dev/wave"

// Read returns the snapshot of an object, and false if it is not of the kind. The snapshot shares nothing with the object.
func Read(k Kind, obj runtime.Object, reading Reading) (*Workload, bool) {
	return ReadAfter(k, obj, reading, nil)
}

// ReadAfter returns the same as Read. It is faster if only the status was written since an earlier state, which was read with equal settings.
func ReadAfter(k Kind, obj runtime.Object, reading Reading, earlier *Workload) (*Workload, bool) {
	parts, ok := k.read(obj)
	if !ok {
		return nil, false
	}
	meta, template, parsed := parts.meta, parts.template, k.parse(parts, reading, earlier)
	w := &Workload{
		object:    k.object(meta),
		Problems:  slices.Clip(parsed.problems),
		wishes:    parsed.wishes,
		record:    record{Rolled: parsed.rolled, Revision: k.strategy.revision(parts), Last: parsed.last},
		Reverted:  parseRolled(meta.Annotations[annotationReverted]),
		ours:      parsed.ours,
		stored:    storedOf(meta, template, reading.keys().PausedAt),
		kindState: parts.kindState,
	}
	w.Progress, w.template, w.bare = parts.progress, parsed.template, parsed.bare
	if k.countsChanges {
		w.parsed = parsed
	}
	if parts.serving {
		w.ServingSince = w.Version
	}
	if w.target != nil {
		w.readTarget(parts, reading)
	}
	if len(w.Refs) == maxReferences {
		w.problem("pod template", "", fmt.Sprintf(
			"it reads %d sources or more; those beyond the first, by kind and name, do not count", maxReferences))
	}
	if parts.usesOtherTemplate {
		w.Runs, w.observes, w.passedOn, w.OptIn = parts.runs, parts.observes, w.OptIn, OptIn{}
	} else if owner, ok := reading.ownerOf(k, meta); ok {
		w.Owner = owner
		w = w.Owned()
	}
	if reading.Reloader {
		w.readReloader(meta, template, reading)
	}
	w.readTiming(meta.Annotations, reading)
	w.readInPlace(meta.Annotations, parts, reading)
	if text, ok := meta.Annotations[annotationWave]; ok {
		wave, err := strconv.Atoi(text)
		if err != nil {
			w.problem(annotationWave, text, "is not a whole number")
		}
		w.Wave = wave
	}
	return w, true
}

// object reads the data of the object itself.
func (k Kind) object(meta *metav1.ObjectMeta) object {
	o := object{
		ID:      events.Workload{Kind: k.Name, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID)},
		Version: meta.ResourceVersion, Created: meta.CreationTimestamp.Time, Generation: meta.Generation, UndoneBy: undoneBy(meta),
	}
	if k.plural != "" { // Readers of outcomes need these to find the object.
		o.ID.APIVersion, o.ID.Resource = k.APIVersion, k.plural
	}
	o.readWrites(meta)
	return o
}

// storedOf reads the stored parts. PausedAt is the key of Reloader's annotation that a patch writes.
func storedOf(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, pausedAt string) stored {
	s := stored{annotated: meta.Annotations != nil, templateAnnotated: template.Annotations != nil}
	_, s.metaTraced = meta.Annotations[events.AnnotationTraceparent]
	_, s.traced = template.Annotations[events.AnnotationTraceparent]
	for _, name := range []string{
		pausedAt, annotationRolled, annotationReverted, annotationLast,
		events.AnnotationHold, annotationRolledNow, annotationRolledAt, annotationRolls,
	} {
		if text, ok := meta.Annotations[name]; ok {
			s.annotations = append(s.annotations, annotation{name, text})
		}
	}
	return s
}

// readTiming reads the annotations that say when the workload may be rolled, and those that its rolls have written about this.
func (w *Workload) readTiming(on map[string]string, reading Reading) {
	w.Hold, w.rolledNow = events.HoldText(on[events.AnnotationHold]), on[annotationRolledNow]
	w.rolledAt, _ = time.Parse(time.RFC3339, on[annotationRolledAt])
	w.rolls = parseRolls(on[annotationRolls])
	w.windows.value.Windows, w.maxRolls.value = reading.Window, reading.MaxRollsPerHour
	w.interval.value, w.bake.value = reading.MinInterval, reading.Bake

	w.readRollNow(on[AnnotationRollNow])
	w.readWindow(on[AnnotationWindow])
	w.readDuration(AnnotationMinInterval, on, MaxInterval, &w.interval)
	if text := on[AnnotationMaxRollsPerHour]; text != "" {
		most, err := strconv.Atoi(text)
		if err != nil || most < 0 {
			w.problem(AnnotationMaxRollsPerHour, "", fmt.Sprintf("%.50q is not a whole number of 0 (without limit) or more", text))
		} else {
			w.maxRolls = setting[int]{most, true}
		}
	}
	w.readDuration(AnnotationBake, on, MaxBake, &w.bake)
}
