package timeline

import (
	"fmt"
	"strings"
	"time"
)

// span formats a duration, with as much precision as is useful.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + span(-max(d, -time.Duration(1<<62)))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.Replace(fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds()), ".0", "", 1)
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 48*time.Hour:
		return two(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return two(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

// two formats a duration in two units, without the smaller one if its value is zero.
func two(large int, unit string, small int, lesser string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", large, unit)
	}
	return fmt.Sprintf("%d %s %d %s", large, unit, small, lesser)
}

// since formats a time after the start of a rotation.
func since(d time.Duration) string {
	if d == 0 {
		return "+0"
	}
	return "+" + span(d)
}
