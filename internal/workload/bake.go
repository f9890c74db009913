package workload

import (
	"fmt"
	"time"
)

const (
	// AnnotationBake is the annotation, on a workload, that says how long its pods must stay ready after a roll before other workloads are
	// rolled for the same change. It counts only for the workload that is rolled first.
	AnnotationBake = "keyturn.dev/bake"
	// MaxBake is the longest valid value of AnnotationBake.
	MaxBake = 24 * time.Hour
)

// bake is how long the pods must stay ready.
type bake struct {
	// time is from the workload's own annotation if own is true, and otherwise Reading.Bake.
	time time.Duration
	own  bool
}

// Bake returns how long the workload's pods must stay ready after a roll before other workloads follow, if it is rolled first.
func (w *Workload) Bake() time.Duration { return w.bakes.time }

// Tries reports whether the workload's pods show that they work with what they read: they keep running, and their readiness is known.
func (w *Workload) Tries() bool {
	return !w.RunsOnce() && !w.Progress.Frozen && (w.Progress.Pods > 0 || w.target != nil)
}

// readBake reads AnnotationBake.
func (w *Workload) readBake(on map[string]string, reading Reading) {
	w.bakes.time = reading.Bake
	text := on[AnnotationBake]
	if text == "" {
		return
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 || span > MaxBake {
		w.Problems = append(w.Problems, &itemError{annotation: AnnotationBake, problem: fmt.Sprintf(
			"%.50q is not a duration of 0 to %dh, such as 10m", text, int(MaxBake.Hours()))})
		return
	}
	w.bakes = bake{span, true}
}

// or returns what applies to a workload whose pods another one runs: its own annotation if it has one, otherwise that of the other.
func (b bake) or(other bake) bake {
	if !b.own && other.own {
		return other
	}
	return b
}
