package workload

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zone files

	"github.com/robfig/cron/v3"
)

const (
	// always is the text for no windows: workloads may be rolled at any time.
	always = "always"
	// maxText is the maximum length of the text of windows in bytes, and maxWindows the maximum number of windows.
	maxText    = 1 << 10
	maxWindows = 16
	// maxDuration is the longest valid duration of a window.
	maxDuration = 7 * 24 * time.Hour
)

// spread is the time after the opening of a window in which rolls begin at different moments. It is at most a twentieth of the window's duration.
const spread = 5 * time.Minute

// WindowForm describes a window for users.
const WindowForm = `"<minute> <hour> <day of month> <month> <day of week> for <duration> <zone>", such as "0 1 * * 1-5 for 3h Europe/Berlin"`

// Windows is a set of windows in which workloads may be rolled. Several may be open at the same time. The zero value has none and is always open.
//
// The cron fields refer to the wall clock of a time zone, and the duration is elapsed time. An opening at a time that the wall clock skips is at the
// end of the gap, and an opening at a time that it shows twice is at the first one, so every night has its window. An invalid window is closed,
// because a typo must not restart a database at noon.
type Windows struct {
	text string
	list []window
}

// window opens at the times of its cron fields by the wall clock of a time zone, and stays open for its duration.
type window struct {
	// opens contains the cron fields. It computes with wall clock times as if they were UTC.
	opens    *cron.SpecSchedule
	duration time.Duration
	zone     *time.Location
}

// ParseWindows reads windows separated by semicolons. Each has the five cron fields, "for", a duration, and optionally the IANA name of a time zone,
// which is UTC by default. The text "always" means no windows.
func ParseWindows(text string) (Windows, error) {
	windows := Windows{text: strings.TrimSpace(text)}
	if windows.text == always {
		return windows, nil
	}
	if len(text) > maxText {
		return Windows{}, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	for item := range strings.SplitSeq(text, ";") {
		one, err := parseWindow(strings.Fields(item))
		if err != nil {
			return Windows{}, fmt.Errorf("%.100q: %w", strings.TrimSpace(item), err)
		}
		windows.list = append(windows.list, one)
	}
	if len(windows.list) > maxWindows {
		return Windows{}, fmt.Errorf("there are %d windows, want at most %d", len(windows.list), maxWindows)
	}
	return windows, nil
}

func parseWindow(fields []string) (window, error) {
	const cronFields, withoutZone, withZone = 5, 7, 8
	if len(fields) != withoutZone && len(fields) != withZone || fields[cronFields] != "for" {
		return window{}, errors.New("want " + WindowForm)
	}
	one := window{zone: time.UTC}
	var err error
	if one.opens, err = parseCron(strings.Join(fields[:cronFields], " ")); err != nil {
		return window{}, err
	}
	duration := fields[cronFields+1]
	if one.duration, err = time.ParseDuration(duration); err != nil {
		return window{}, fmt.Errorf("%.50q is not a duration such as 3h or 90m", duration)
	}
	if one.duration <= 0 || one.duration > maxDuration {
		return window{}, fmt.Errorf("the duration is %s, want more than 0 and at most %dh", one.duration, int(maxDuration.Hours()))
	}
	if len(fields) == withZone {
		name := fields[withZone-1]
		if one.zone, err = time.LoadLocation(name); err != nil || name == time.Local.String() {
			return window{}, fmt.Errorf("%.50q is not the IANA name of a zone such as Europe/Berlin", name)
		}
	}
	return one, nil
}

// parseCron reads the five cron fields. It refuses fields that match no day, such as February 30.
func parseCron(text string) (*cron.SpecSchedule, error) {
	if strings.ContainsAny(text, "=@") {
		return nil, errors.New("want five fields of cron, without a zone before them")
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("reading the fields of cron: %w", err)
	}
	opens, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("reading the fields of cron: %q is a %T", text, parsed)
	}
	opens.Location = time.UTC
	leapYear := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	if opens.Next(leapYear.Add(-1)).IsZero() {
		return nil, errors.New("it never opens: there is no such day")
	}
	return opens, nil
}

// String returns the windows as written.
func (w Windows) String() string { return w.text }

// Opening returns the time from which a workload with the given share of the spread, from 0 to 1, may roll. If it may roll now, the time is not after
// now; otherwise, it is in the next window. It returns false if no window opens for years. Windows that overlap or touch count as one, with the
// spread of the first.
func (w Windows) Opening(now time.Time, share float64) (time.Time, bool) {
	if len(w.list) == 0 {
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
	_, _, open := w.began(now)
	return open || len(w.list) == 0
}

// began returns since when some window has been open without interruption, and the window that opened first. It looks back only until the spread has
// certainly ended.
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

// delay returns how long after an opening a workload with the given share of the spread may roll.
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

// wallClock returns the wall clock time of a zone at a time, as if it were UTC.
func wallClock(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// furthest is more than the offset of any wall clock from UTC.
const furthest = 24 * time.Hour

// instant returns when the wall clock of a time zone first shows a time, which is given as if it were UTC. If the wall clock skips that time, it
// returns the end of the gap. A later wall clock time never gives an earlier instant.
func instant(shown time.Time, zone *time.Location) time.Time {
	for at := shown.Add(-furthest); ; {
		_, offset := at.In(zone).Zone()
		_, change := at.In(zone).ZoneBounds()
		showing := shown.Add(-time.Duration(offset) * time.Second)
		switch {
		case showing.Before(at):
			return at.UTC() // The wall clock skipped the time at this change.
		case change.IsZero() || showing.Before(change):
			return showing
		}
		at = change
	}
}
