package workload

import (
	"fmt"
	"time"
)

const (
	// AnnotationMinInterval is the annotation, on a workload, that says how long after a roll the next one begins at the earliest.
	AnnotationMinInterval = "keyturn.dev/min-interval"
	// annotationRolledAt is when it was last rolled, if an interval applies.
	annotationRolledAt = "keyturn.dev/rolled-at"
	// MaxInterval is how long an interval is at most.
	MaxInterval = 7 * 24 * time.Hour
)

// interval is how long a workload is left alone after a roll. The zero value is not at all.
type interval struct {
	// least is the time between two rolls, of its own annotation or of Reading.MinInterval; own says of which.
	least time.Duration
	own   bool
	// rolled is when it was last rolled. Zero: it is not known.
	rolled time.Time
}

// NextRoll returns when the interval after the last roll ends. It is false if there is none, or if it is over. A roll in the future is none: nobody
// would know for how long.
func (w *Workload) NextRoll(now time.Time) (time.Time, bool) {
	i := w.interval
	end := i.rolled.Add(i.least)
	if i.least == 0 || i.rolled.IsZero() || i.rolled.After(now.Add(pauseTolerance)) || !now.Before(end) {
		return time.Time{}, false
	}
	return end, true
}

// readInterval reads how long a workload is left alone after a roll.
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

// or returns what counts for a workload that another one runs: its own annotation, or else that of the other.
func (i interval) or(other interval) interval {
	if !i.own && other.own {
		i.least, i.own = other.least, true
	}
	return i
}

// asBefore returns what puts back what a roll that was none has recorded: that it was asked for, when it was, and that it counts.
func (w *Workload) asBefore(before *Workload) []operation {
	if before == nil {
		return nil
	}
	var operations []operation
	for _, name := range []string{annotationRolledNow, annotationRolledAt, annotationRolls} {
		if text := before.stored.text(name); text != w.stored.text(name) {
			operations = append(operations, w.stored.write(name, text)...)
		}
	}
	return operations
}

// rolledAt returns what records when a workload is rolled, nothing if no interval applies. It is rounded up, so that nobody ends it too early.
func (w *Workload) rolledAt(write Write) []operation {
	if !write.acts() || w.interval.least == 0 || write.RolledAt.IsZero() {
		return nil
	}
	return w.stored.write(annotationRolledAt, write.RolledAt.Add(time.Second-1).Truncate(time.Second).UTC().Format(time.RFC3339))
}
