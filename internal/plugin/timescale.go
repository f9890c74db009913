package plugin

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// scale maps times to positions on a lane, in percent of its width.
//
// It is logarithmic, because a rotation takes seconds for most workloads, and hours for those that wait for their window, and both must be
// readable. The first thousandth of the whole time, but at least 100 ms, takes about a tenth of the width.
type scale struct {
	start time.Time
	whole float64
	unit  float64
}

// finest is the shortest unit of the scale.
const finest = 100 * time.Millisecond

func newScale(start, end time.Time) scale {
	whole := max(end.Sub(start), finest)
	return scale{start: start, whole: float64(whole), unit: float64(max(whole/1000, finest))}
}

// position returns the position of a time, from 0 to 100. Times outside of the scale are at the nearer end.
func (s *scale) position(t time.Time) float64 {
	after := min(max(float64(t.Sub(s.start)), 0), s.whole)
	return 100 * math.Log1p(after/s.unit) / math.Log1p(s.whole/s.unit)
}

// percent returns the position of a time as an attribute.
func (s *scale) percent(t time.Time) string { return fmt.Sprintf("%.2f%%", s.position(t)) }

// width returns the width of a bar as an attribute. The shortest bar is still visible.
func (s *scale) width(from, to time.Time) string {
	return fmt.Sprintf("%.2f%%", max(s.position(to)-s.position(from), 0.2))
}

// round are the times that the axis may label.
var round = []time.Duration{
	0, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute,
	time.Hour, 6 * time.Hour, 24 * time.Hour, 240 * time.Hour,
}

// apart is the minimum distance of two labels on the axis, in percent.
const apart = 11

// ticks returns the times that the axis labels, with its end as the last.
func (s *scale) ticks() []time.Duration {
	var named []time.Duration
	next := 0.0
	for _, d := range round {
		at := s.position(s.start.Add(d))
		if at < next || at > 100-apart {
			continue
		}
		named = append(named, d)
		next = at + apart
	}
	return append(named, time.Duration(s.whole))
}

// span formats a duration like an age in the other commands, but with more precision below ten seconds.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + span(-max(d, -time.Duration(1<<62)))
	case d < time.Second:
		return d.Truncate(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Truncate(100 * time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// since formats a time after the start of a rotation.
func since(d time.Duration) string {
	if d == 0 {
		return "+0"
	}
	return "+" + span(d)
}
