package workload

import (
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/annotations"
)

// pauseTolerance is how far the clock of who wrote paused-at may be ahead.
const pauseTolerance = 10 * time.Second

// Pause is how long the changes of a Deployment are gathered that follow a roll, as Reloader's annotations say: Reloader pauses the Deployment
// for the period. The zero value is not at all.
type Pause struct {
	// Period is how long. Zero: not at all.
	Period time.Duration
	// Begun is when a pause began that nobody has ended yet. Zero: there is none.
	Begun time.Time
}

// End returns when the pause ends. It is false if there is none, or if it is over. One that would begin later is none: nobody would know for
// how long.
func (p Pause) End(now time.Time) (time.Time, bool) {
	end := p.Begun.Add(p.Period)
	if p.Period == 0 || p.Begun.IsZero() || p.Begun.After(now.Add(pauseTolerance)) || !now.Before(end) {
		return time.Time{}, false
	}
	return end, true
}

// IsPausedBySomeone reports whether spec.paused is set, which Keyturn never does. Whoever did it decides when the rollout goes on.
func (w *Workload) IsPausedBySomeone() bool {
	return w.ID.Kind == deployments.Name && w.Progress.State == Waiting && !w.IsRun()
}

// readPause reads the annotations of a Deployment. A beginning that is no time, as after an edit by hand, counts as none.
func (w *Workload) readPause(keys annotations.Reloader, on map[string]string) {
	w.pausedAtKey = keys.PausedAt
	if text, ok := on[keys.PausedAt]; ok {
		w.stored.keep(keys.PausedAt, text)
		w.Pause.Begun, _ = time.Parse(time.RFC3339, text)
	}
	text, ok := on[keys.PausePeriod]
	if !ok {
		return
	}
	period, err := time.ParseDuration(text)
	if err != nil || period <= 0 {
		w.Problems = append(w.Problems, &itemError{
			annotation: keys.PausePeriod, problem: fmt.Sprintf("%.100q is not a duration of more than zero, such as 30s or 5m", text),
		})
		return
	}
	w.Pause.Period = period
}

// pausedAt returns what the annotation has after a write.
func (w *Workload) pausedAt(write Write) string {
	switch {
	case write.EndsPause:
		return ""
	case write.PausedAt.IsZero():
		return w.stored.text(w.pausedAtKey)
	}
	// Rounded up, so that nobody who reads it ends the pause too early.
	return write.PausedAt.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
}
