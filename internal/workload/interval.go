package workload

import (
	"fmt"
	"time"
)

const (
	// AnnotationMinInterval is the annotation, on a workload, with the shortest time between two of its rolls.
	AnnotationMinInterval = "keyturn.dev/min-interval"
	// annotationRolledAt is when the workload was last rolled. It is written only if an interval applies.
	annotationRolledAt = "keyturn.dev/rolled-at"
	// MaxInterval is the longest valid interval.
	MaxInterval = 7 * 24 * time.Hour
)

// interval is how long a workload is left alone after a roll. The zero value means no time at all.
type interval struct {
	// least is the shortest time between two rolls: from the workload's own annotation if own is true, and otherwise Reading.MinInterval.
	least time.Duration
	own   bool
	// rolled is when the workload was last rolled, or zero if that is not known.
	rolled time.Time
}

// NextRoll returns when the interval after the last roll ends. It returns false if there is none, or if it is over. A last roll in the future is
// ignored.
func (w *Workload) NextRoll(now time.Time) (time.Time, bool) {
	i := w.interval
	end := i.rolled.Add(i.least)
	if i.least == 0 || i.rolled.IsZero() || i.rolled.After(now.Add(pauseTolerance)) || !now.Before(end) {
		return time.Time{}, false
	}
	return end, true
}

// readInterval reads AnnotationMinInterval and the time of the last roll.
func (w *Workload) readInterval(on map[string]string, reading Reading) {
	w.interval.least = reading.MinInterval
	if text, ok := on[annotationRolledAt]; ok {
		w.stored.keep(annotationRolledAt, text)
		w.interval.rolled, _ = time.Parse(time.RFC3339, text)
	}
	text := on[AnnotationMinInterval]
	if text == "" {
		return
	}
	least, err := time.ParseDuration(text)
	if err != nil || least < 0 || least > MaxInterval {
		w.Problems = append(w.Problems, &itemError{annotation: AnnotationMinInterval, problem: fmt.Sprintf(
			"%.50q is not a duration of 0 to %dh, such as 10m", text, int(MaxInterval.Hours()))})
		return
	}
	w.interval.least, w.interval.own = least, true
}

// or returns what applies to a workload whose pods another one runs: its own annotation if it has one, otherwise that of the other.
func (i interval) or(other interval) interval {
	if !i.own && other.own {
		i.least, i.own = other.least, true
	}
	return i
}

// asBefore returns the operations that undo what was recorded for a roll that had no effect: its AnnotationRollNow, its time, its count, and
// its mark. Before is nil if there is nothing to undo.
func (w *Workload) asBefore(before *Workload) []operation {
	if before == nil {
		return nil
	}
	var operations []operation
	for _, name := range []string{annotationRolledNow, annotationRolledAt, annotationRolls, annotationLast} {
		if text := before.stored.text(name); text != w.stored.text(name) {
			operations = append(operations, w.stored.write(name, text)...)
		}
	}
	return operations
}

// rolledAt returns the operations that record when a workload is rolled, none if no interval applies. The time is rounded up, so that nobody
// ends the interval too early.
func (w *Workload) rolledAt(write Write) []operation {
	if !write.acts() || w.interval.least == 0 || write.RolledAt.IsZero() {
		return nil
	}
	return w.stored.write(annotationRolledAt, write.RolledAt.Add(time.Second-1).Truncate(time.Second).UTC().Format(time.RFC3339))
}

// LastRoll returns when the workload was last rolled, as far as that is noted on it, or zero if it is not. A time in the future does not count.
func (w *Workload) LastRoll(now time.Time) time.Time {
	last := w.Last.At
	if w.interval.rolled.After(last) {
		last = w.interval.rolled
	}
	if last.After(now.Add(pauseTolerance)) {
		return time.Time{}
	}
	return last
}
