package window

import (
	"time"
	_ "time/tzdata" // The image has no files of zones.

	"github.com/robfig/cron/v3"
)

// maxDuration is how long a window is open at most.
const maxDuration = 7 * 24 * time.Hour

// spread is how long after its opening workloads begin to be rolled at the latest, if that is not more than a twentieth of its duration.
const spread = 5 * time.Minute

// Windows are open one by one, or several together. The zero value has none: it is always open.
type Windows struct {
	text string
	list []window
}

// window opens when the wall clock of a zone shows it, for a duration.
type window struct {
	// opens has the fields of cron. It is asked about wall clocks as if they showed UTC.
	opens    *cron.SpecSchedule
	duration time.Duration
	zone     *time.Location
}

// IsZero reports whether there are no windows.
func (w Windows) IsZero() bool { return len(w.list) == 0 }

// String returns the windows as they were written.
func (w Windows) String() string { return w.text }

// Opening returns from when on somebody may act who comes with a share of the spread, from 0 to 1: a time that is not after now if they may now, and
// otherwise the next. It is false if no window opens for years. Windows that overlap or touch are one, with the share of the first.
func (w Windows) Opening(now time.Time, share float64) (time.Time, bool) {
	if w.IsZero() {
		return time.Time{}, true
	}
	if began, first, open := w.began(now); open {
		return began.Add(first.delay(share)), true
	}
	var next time.Time
	for i := range w.list {
		at, ok := w.list[i].after(now)
		if at = at.Add(w.list[i].delay(share)); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, !next.IsZero()
}

// IsOpen reports whether one of the windows is open, or there are none.
func (w Windows) IsOpen(now time.Time) bool {
	if w.IsZero() {
		return true
	}
	_, _, open := w.began(now)
	return open
}

// began returns when the windows opened that are open at a time without having been closed since, and the one that opened first. It looks back no
// further than to find that nobody waits for a share any more.
func (w Windows) began(now time.Time) (began time.Time, first *window, open bool) {
	for at := now; now.Sub(at) <= spread; at = began.Add(-1) {
		earliest, by := time.Time{}, (*window)(nil)
		for i := range w.list {
			one := &w.list[i]
			if opened, ok := one.after(at.Add(-one.duration)); ok && !opened.After(at) && (by == nil || opened.Before(earliest)) {
				earliest, by = opened, one
			}
		}
		if by == nil {
			break
		}
		began, first, open = earliest, by, true
	}
	return began, first, open
}

// delay returns how long after an opening somebody may act who comes with a share of the spread.
func (w *window) delay(share float64) time.Duration {
	return time.Duration(share * float64(min(w.duration/20, spread)))
}

// after returns the first opening after a time, and false if there is none for years.
func (w *window) after(at time.Time) (time.Time, bool) {
	for shown := w.opens.Next(wallClock(at, w.zone)); !shown.IsZero(); shown = w.opens.Next(shown) {
		if opening := instant(shown, w.zone); opening.After(at) {
			return opening, true
		}
	}
	return time.Time{}, false
}

// wallClock returns what the wall clock of a zone shows at a time, as if that were UTC.
func wallClock(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// furthest is more than any wall clock is ahead of UTC.
const furthest = 24 * time.Hour

// instant returns when the wall clock of a zone first shows a time, which is written as if it were UTC. It is when the wall clock goes on if it skips
// that. The later the wall clock, the later the instant, or it is the same.
func instant(shown time.Time, zone *time.Location) time.Time {
	for at := shown.Add(-furthest); ; {
		_, offset := at.In(zone).Zone()
		_, change := at.In(zone).ZoneBounds()
		showing := shown.Add(-time.Duration(offset) * time.Second)
		switch {
		case showing.Before(at):
			return at.UTC() // The change before it has skipped it.
		case change.IsZero() || showing.Before(change):
			return showing
		}
		at = change
	}
}
