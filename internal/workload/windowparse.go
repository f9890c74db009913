package workload

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// always is the text for no windows: workloads may be rolled at any time.
	always = "always"
	// maxText is the maximum length of the text of windows in bytes, and maxWindows the maximum number of windows.
	maxText    = 1 << 10
	maxWindows = 16
)

// WindowForm is the form of a window, for people.
const WindowForm = `"<minute> <hour> <day of month> <month> <day of week> for <duration> <zone>", such as "0 1 * * 1-5 for 3h Europe/Berlin"`

// ParseWindows reads windows separated by semicolons. Each has the five fields of cron, "for", a duration, and optionally the IANA name of a time zone,
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
		one, err := parse(strings.Fields(item))
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

func parse(fields []string) (window, error) {
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
		if one.zone, err = parseZone(fields[withZone-1]); err != nil {
			return window{}, err
		}
	}
	return one, nil
}

// parseCron reads the five fields of cron. It refuses fields that match no day, such as February 30.
func parseCron(text string) (*cron.SpecSchedule, error) {
	if strings.ContainsAny(text, "=@") {
		return nil, errors.New("want five fields of cron, without a zone before them")
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
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

func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == time.Local.String() {
		return nil, fmt.Errorf("%.50q is not the IANA name of a zone such as Europe/Berlin", name)
	}
	return zone, nil
}
