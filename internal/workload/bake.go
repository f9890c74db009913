package workload

import (
	"fmt"
	"time"
)

const (
	// AnnotationBake is the annotation, on a workload, that says how long its pods must stay ready after a roll before others are rolled for the
	// same change, if it goes first with that.
	AnnotationBake = "keyturn.dev/bake"
	// MaxBake is how long that is at most.
	MaxBake = 24 * time.Hour
)

// bake is how long the pods must stay ready.
type bake struct {
	// time is that of its own annotation, or of Reading.Bake; own says of which.
	time time.Duration
	own  bool
}

// Bake returns how long its pods must stay ready after a roll with which it goes first.
func (w *Workload) Bake() time.Duration { return w.bakes.time }

// Tries reports whether its pods show whether they can do with what they read: they stay, and are ready or not.
func (w *Workload) Tries() bool { return !w.RunsOnce() && (w.Progress.Pods > 0 || w.target != nil) }

// readBake reads how long its pods must stay ready.
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

// or returns what counts for a workload that another one runs: its own annotation, or else that of the other.
func (b bake) or(other bake) bake {
	if !b.own && other.own {
		return other
	}
	return b
}
