package timeline

import (
	"math"
	"time"
)

// scale places times on the width of a lane, in percent.
//
// It is logarithmic: a rotation is over in seconds for most, and in hours for those that wait for their window, and both are to be read. So the
// thousandth part of the whole, from 100 ms on, is about a tenth of the width.
type scale struct {
	start time.Time
	whole float64
	unit  float64
}

// finest is the shortest time that the scale spreads.
const finest = 100 * time.Millisecond

func newScale(start, end time.Time) scale {
	whole := max(end.Sub(start), finest)
	return scale{start: start, whole: float64(whole), unit: float64(max(whole/1000, finest))}
}

// position returns where a time is, from 0 to 100. One that is not on the scale is at its nearer end.
func (s *scale) position(t time.Time) float64 {
	after := min(max(float64(t.Sub(s.start)), 0), s.whole)
	return 100 * math.Log1p(after/s.unit) / math.Log1p(s.whole/s.unit)
}

// round are the times that the axis names.
var round = []time.Duration{
	0, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute,
	time.Hour, 6 * time.Hour, 24 * time.Hour, 240 * time.Hour,
}

// apart is how far two names on the axis are apart at least, in percent.
const apart = 11

// ticks returns which times the axis names, its end the last.
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
