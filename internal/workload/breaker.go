package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// AnnotationMaxRollsPerHour is the annotation, on a workload, that says how often it may be rolled within an hour: a whole number, 0 for
	// without limit.
	AnnotationMaxRollsPerHour = "keyturn.dev/max-rolls-per-hour"
	// annotationRolls counts the rolls since the first one of the last hour: "<count> since <time>".
	annotationRolls = "keyturn.dev/rolls"
	// breakerPeriod is how long rolls are counted, from the first one on.
	breakerPeriod = time.Hour
)

// breaker stops a workload that is rolled without end, because its roll changes what it reads, or because another client fights. The zero value
// stops nothing.
type breaker struct {
	// most is how many rolls it may have within breakerPeriod, of its own annotation or of Reading.MaxRollsPerHour; own says of which. Zero: any
	// number.
	most  int
	own   bool
	rolls rolls
}

// rolls are those of a workload since a time, which is that of the first one. The zero value is none.
type rolls struct {
	count int
	since time.Time
}

// String returns the text form.
func (r rolls) String() string {
	return strconv.Itoa(r.count) + " since " + r.since.UTC().Format(time.RFC3339)
}

// parseRolls reads the text form. What is not valid, as after an edit by hand, counts as none.
func parseRolls(text string) rolls {
	count, since, _ := strings.Cut(text, " since ")
	n, err := strconv.Atoi(count)
	at, atErr := time.Parse(time.RFC3339, since)
	if err != nil || atErr != nil || n < 1 {
		return rolls{}
	}
	return rolls{n, at}
}

// isOver reports whether the time in which they count is over. If they began in the future, it is: nobody would know for how long they count.
func (r rolls) isOver(now time.Time) bool {
	return r.count == 0 || r.since.After(now.Add(pauseTolerance)) || !now.Before(r.since.Add(breakerPeriod))
}

// and returns them with one more, at a time. It is rounded up, so that nobody ends their hour too early.
func (r rolls) and(at time.Time) rolls {
	if r.isOver(at) {
		return rolls{1, at.Add(time.Second - 1).Truncate(time.Second)}
	}
	return rolls{r.count + 1, r.since}
}

// isLater reports whether they tell more than others.
func (r rolls) isLater(than rolls) bool {
	return r.since.After(than.since) || r.since.Equal(than.since) && r.count > than.count
}

// TooOften returns until when the workload is not rolled because it was rolled too often, and the rolls in words. It is false if it may be rolled.
func (w *Workload) TooOften(now time.Time) (end time.Time, said string, is bool) {
	b := w.breaker
	if b.most == 0 || b.rolls.count < b.most || b.rolls.isOver(now) {
		return time.Time{}, "", false
	}
	return b.rolls.since.Add(breakerPeriod), b.rolls.String(), true
}

// readBreaker reads how often the workload may be rolled, and was.
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

// recallRolls adds the rolls that an earlier state has. Who takes rolls back may put back or remove the annotation, too. Rolls of the future are
// none: they would be later than all that is counted from then on.
func (w *Workload) recallRolls(earlier *Workload) {
	if latest := w.Written.Add(pauseTolerance); !w.Written.IsZero() && earlier.breaker.rolls.since.After(latest) {
		return
	}
	if earlier.breaker.rolls.isLater(w.breaker.rolls) {
		w.breaker.rolls = earlier.breaker.rolls
	}
}

// or returns what counts for a workload that another one runs: its own annotation, or else that of the other.
func (b breaker) or(other breaker) breaker {
	if !b.own && other.own {
		b.most, b.own = other.most, true
	}
	return b
}

// Counts reports whether a patch counts a roll, also one that tells pods in place. Nothing is counted without a limit.
func (w *Workload) Counts(write Write) bool {
	return write.acts() && w.breaker.most > 0 && !write.RolledAt.IsZero() && !write.Uncounted
}

// Recount has a workload that was rolled know of the roll although it was not counted on it. Before is the state before it.
func (w *Workload) Recount(before *Workload, at time.Time) {
	w.breaker.rolls = before.breaker.rolls.and(at)
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

// rollsAfter returns what counts a roll.
func (w *Workload) rollsAfter(write Write) []operation {
	if !w.Counts(write) {
		return nil
	}
	return w.stored.write(annotationRolls, w.breaker.rolls.and(write.RolledAt).String())
}
