package workload

import (
	"cmp"
	"fmt"
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

	// AnnotationBake is the annotation, on a workload, with the time for which its pods must stay ready after a roll before other workloads are
	// rolled for the same change. It counts only for the workload that is rolled first.
	AnnotationBake = "keyturn.dev/bake"
	// MaxBake is the longest valid value of AnnotationBake.
	MaxBake = 24 * time.Hour

	// AnnotationMaxRollsPerHour is the annotation, on a workload, that limits its rolls per hour; 0 means no limit. It ends the endless rolls of a
	// workload that changes its own sources, or whose rolls another client reverts.
	AnnotationMaxRollsPerHour = "keyturn.dev/max-rolls-per-hour"
	// annotationRolls counts the rolls since the first one of the last hour, "<count> since <time>", and consecutive ones: see streaks.
	annotationRolls = "keyturn.dev/rolls"
	// countingPeriod is how long rolls are counted, from the first one on.
	countingPeriod = time.Hour

	// clockTolerance is how far ahead the clock of a client that writes times on a workload may be.
	clockTolerance = 10 * time.Second
)

// timing contains the settings of a workload or a namespace that determine when a workload may be rolled.
type timing struct {
	// Hold is why the workload is on hold, in one line. It is empty if it is not.
	Hold string
	// now contains the values of AnnotationRollNow.
	now     rollNow
	windows setting[openings]
	// interval is the shortest time between two rolls, and bake how long pods must stay ready. Zero means no time.
	interval, bake setting[time.Duration]
	// maxRolls is how many rolls are allowed within countingPeriod. Zero means no limit.
	maxRolls setting[int]
}

// setting is a setting from the workload's own annotation if own is true, otherwise from a flag.
type setting[T any] struct {
	value T
	own   bool
}

// or returns the setting, or the other one if only that is from an annotation.
func (s setting[T]) or(other setting[T]) setting[T] {
	if !s.own && other.own {
		return other
	}
	return s
}

// or returns the settings of a workload together with those of a workload that runs its pods, or of its namespace.
func (t timing) or(other timing) timing {
	t.Hold = cmp.Or(t.Hold, other.Hold)
	for _, value := range other.now {
		t.now = t.now.and(value)
	}
	t.windows, t.maxRolls = t.windows.or(other.windows), t.maxRolls.or(other.maxRolls)
	t.interval, t.bake = t.interval.or(other.interval), t.bake.or(other.bake)
	return t
}

// readDuration reads an annotation with a duration of 0 to longest.
func (w *Workload) readDuration(annotation string, on map[string]string, longest time.Duration, into *setting[time.Duration]) {
	text := on[annotation]
	if text == "" {
		return
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 || span > longest {
		w.problem(annotation, "", fmt.Sprintf("%.50q is not a duration of 0 to %dh, such as 10m", text, int(longest.Hours())))
		return
	}
	*into = setting[time.Duration]{span, true}
}

// Bake returns how long the workload's pods must stay ready after a roll before other workloads follow, if it is rolled first.
func (w *Workload) Bake() time.Duration { return w.bake.value }

// Tries reports whether the workload's pods show that they work with their sources: they keep running and have a known readiness.
func (w *Workload) Tries() bool {
	return !w.RunsOnce() && !w.Progress.Frozen && (w.Progress.Pods > 0 || w.target != nil)
}

// NextRoll returns when the interval after the last roll ends, and false if there is none or it has ended. A last roll in the future is ignored.
func (w *Workload) NextRoll(now time.Time) (time.Time, bool) {
	least := w.interval.value
	end := w.rolledAt.Add(least)
	if least == 0 || w.rolledAt.IsZero() || w.rolledAt.After(now.Add(clockTolerance)) || !now.Before(end) {
		return time.Time{}, false
	}
	return end, true
}

// LastRoll returns the time of the last roll that is noted on the workload, or zero if there is none. A time in the future does not count.
func (w *Workload) LastRoll(now time.Time) time.Time {
	last := later(w.Last.At, w.rolledAt)
	if last.After(now.Add(clockTolerance)) {
		return time.Time{}
	}
	return last
}

// TooOften reports whether the limit of rolls is reached. If so, it returns when it ends, and the count in words.
func (w *Workload) TooOften(now time.Time) (end time.Time, said string, is bool) {
	if w.maxRolls.value == 0 || w.rolls.count < w.maxRolls.value || w.rolls.isOver(now) {
		return time.Time{}, "", false
	}
	return w.rolls.since.Add(countingPeriod), w.rolls.String(), true
}

// timesAfter returns the operations that note the time of a roll, if an interval applies, and its count, if there is a limit.
func (w *Workload) timesAfter(write Write) []operation {
	if !write.acts() || write.RolledAt.IsZero() {
		return nil
	}
	var operations []operation
	if w.interval.value > 0 {
		operations = w.stored.write(annotationRolledAt, roundedUp(write.RolledAt).UTC().Format(time.RFC3339))
	}
	if w.maxRolls.value > 0 {
		next := w.rolls.and(write.RolledAt)
		next.often = w.streaksAfter(write)
		operations = append(operations, w.stored.write(annotationRolls, next.text())...)
	}
	return operations
}

// rolls counts the rolls of a workload since the first of them. The zero value means none.
type rolls struct {
	count int
	since time.Time
	// often contains the consecutive rolls.
	often streaks
}

// String returns the count and its start as in the annotation.
func (r rolls) String() string { return counted(r.count, " since ", r.since) }

// text returns the value of the annotation.
func (r rolls) text() string { return strings.TrimSpace(r.String() + " " + r.often.String()) }

// parseRolls reads the annotation. Invalid text, as after a manual edit, counts as no rolls.
func parseRolls(text string) rolls {
	number, often, hasStreaks := strings.Cut(text, " {")
	count, since, ok := parseCounted(number, " since ")
	if !ok {
		return rolls{}
	}
	read := rolls{count: count, since: since}
	if hasStreaks {
		read.often = parseStreaks("{" + often)
	}
	return read
}

// isOver reports whether the counting period has ended. One that begins in the future counts as over, because its end is unknown.
func (r rolls) isOver(now time.Time) bool {
	return r.count == 0 || r.since.After(now.Add(clockTolerance)) || !now.Before(r.since.Add(countingPeriod))
}

// and returns the count with one more roll at the given time, without consecutive rolls.
func (r rolls) and(at time.Time) rolls {
	if r.isOver(at) {
		return rolls{count: 1, since: roundedUp(at)}
	}
	return rolls{count: r.count + 1, since: r.since}
}

// isLater reports whether r is more recent than another count.
func (r rolls) isLater(than rolls) bool {
	return r.since.After(than.since) || r.since.Equal(than.since) && r.count > than.count
}

// recallRolls keeps the count of an earlier state if it is more recent, because a client that reverts a roll may restore the annotation, too. A count
// that begins in the future is ignored, because it would stay the most recent one.
func (w *Workload) recallRolls(earlier *Workload) {
	inFuture := !w.Written.IsZero() && earlier.rolls.since.After(w.Written.Add(clockTolerance))
	if !inFuture && earlier.rolls.isLater(w.rolls) {
		w.rolls = earlier.rolls
	}
}

// Uncounting returns the workload without its last roll, which had no effect. Stripped is the state after that roll, and before the one before it.
func (w *Workload) Uncounting(stripped, before *Workload) *Workload {
	if w.rolls.count != stripped.rolls.count || !w.rolls.since.Equal(stripped.rolls.since) {
		return w
	}
	uncounted := *w
	uncounted.rolls = before.rolls
	return &uncounted
}
