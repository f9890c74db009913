package workload

import (
	"fmt"
	"strconv"
	"strings"
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

// pauseTolerance is how far ahead the clock of whoever wrote paused-at may be.
const pauseTolerance = 10 * time.Second

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

const (
	// AnnotationMaxRollsPerHour is the annotation, on a workload, that says how often it may be rolled within an hour: a whole number; 0
	// means no limit.
	AnnotationMaxRollsPerHour = "keyturn.dev/max-rolls-per-hour"
	// annotationRolls counts the rolls since the first one of the last hour: "<count> since <time>".
	annotationRolls = "keyturn.dev/rolls"
	// breakerPeriod is how long rolls are counted, from the first one on.
	breakerPeriod = time.Hour
)

// breaker stops rolling a workload that would otherwise be rolled endlessly, because its own roll changes what it reads, or because another
// client keeps undoing the roll. The zero value stops nothing.
type breaker struct {
	// most is how many rolls are allowed within breakerPeriod: from the workload's own annotation if own is true, and otherwise
	// Reading.MaxRollsPerHour. Zero means no limit.
	most  int
	own   bool
	rolls rolls
}

// rolls counts the rolls of a workload since the first of them. The zero value means none.
type rolls struct {
	count int
	since time.Time
}

// String returns the text form.
func (r rolls) String() string {
	return strconv.Itoa(r.count) + " since " + r.since.UTC().Format(time.RFC3339)
}

// parseRolls reads the text form. Invalid text, as after a manual edit, counts as no rolls.
func parseRolls(text string) rolls {
	count, since, _ := strings.Cut(text, " since ")
	n, err := strconv.Atoi(count)
	at, atErr := time.Parse(time.RFC3339, since)
	if err != nil || atErr != nil || n < 1 {
		return rolls{}
	}
	return rolls{n, at}
}

// isOver reports whether the counting period has ended. It counts as ended if it began in the future, because then its end would be unknown.
func (r rolls) isOver(now time.Time) bool {
	return r.count == 0 || r.since.After(now.Add(pauseTolerance)) || !now.Before(r.since.Add(breakerPeriod))
}

// and returns the count with one more roll at the given time. The start of a new period is rounded up, so that nobody ends the hour too early.
func (r rolls) and(at time.Time) rolls {
	if r.isOver(at) {
		return rolls{1, at.Add(time.Second - 1).Truncate(time.Second)}
	}
	return rolls{r.count + 1, r.since}
}

// isLater reports whether r is more recent than another count.
func (r rolls) isLater(than rolls) bool {
	return r.since.After(than.since) || r.since.Equal(than.since) && r.count > than.count
}

// TooOften reports whether the workload may not be rolled now because it was rolled too often. If so, it returns when that ends, and the count of
// rolls in words.
func (w *Workload) TooOften(now time.Time) (end time.Time, said string, is bool) {
	b := w.breaker
	if b.most == 0 || b.rolls.count < b.most || b.rolls.isOver(now) {
		return time.Time{}, "", false
	}
	return b.rolls.since.Add(breakerPeriod), b.rolls.String(), true
}

// readBreaker reads how often the workload may be rolled, and how often it was.
func (w *Workload) readBreaker(on map[string]string, reading Reading) {
	w.breaker.most = reading.MaxRollsPerHour
	if text, ok := on[annotationRolls]; ok {
		w.stored.keep(annotationRolls, text)
		w.breaker.rolls = parseRolls(text)
	}
	text := on[AnnotationMaxRollsPerHour]
	if text == "" {
		return
	}
	most, err := strconv.Atoi(text)
	if err != nil || most < 0 {
		w.Problems = append(w.Problems, &itemError{annotation: AnnotationMaxRollsPerHour, problem: fmt.Sprintf(
			"%.50q is not a whole number of 0 (without limit) or more", text)})
		return
	}
	w.breaker.most, w.breaker.own = most, true
}

// recallRolls keeps the count of an earlier state if that is more recent: whoever undoes a roll may also restore or remove the annotation. A
// count that begins in the future is ignored, because it would stay the most recent one.
func (w *Workload) recallRolls(earlier *Workload) {
	if latest := w.Written.Add(pauseTolerance); !w.Written.IsZero() && earlier.breaker.rolls.since.After(latest) {
		return
	}
	if earlier.breaker.rolls.isLater(w.breaker.rolls) {
		w.breaker.rolls = earlier.breaker.rolls
	}
}

// or returns what applies to a workload whose pods another one runs: its own annotation if it has one, otherwise that of the other.
func (b breaker) or(other breaker) breaker {
	if !b.own && other.own {
		b.most, b.own = other.most, true
	}
	return b
}

// Uncounting returns the workload without a roll that was none. Stripped is the state after that, and before the one before it. It is the workload
// itself unless that was the last roll that it knows of.
func (w *Workload) Uncounting(stripped, before *Workload) *Workload {
	known, counted := w.breaker.rolls, stripped.breaker.rolls
	if known.count != counted.count || !known.since.Equal(counted.since) {
		return w
	}
	uncounted := *w
	uncounted.breaker.rolls = before.breaker.rolls
	return &uncounted
}

// rollsAfter returns the operations that count a roll. A reload in place counts, too. Nothing is counted without a limit.
func (w *Workload) rollsAfter(write Write) []operation {
	if !write.acts() || w.breaker.most == 0 || write.RolledAt.IsZero() {
		return nil
	}
	return w.stored.write(annotationRolls, w.breaker.rolls.and(write.RolledAt).String())
}
