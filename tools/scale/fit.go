package main

import "math"

// point is a measurement.
type point struct{ x, y float64 }

// line is y = base + slope·x.
type line struct {
	base, slope float64
	// off is the relative error at the measurement that the line fits worst.
	off float64
}

func (l line) at(x float64) float64 { return l.base + l.slope*x }

// fitLine returns the line with the least squares. For a single point, it is the line through the origin.
func fitLine(points []point) line {
	if len(points) == 1 {
		points = append([]point{{}}, points...)
	}
	var x, y, xx, xy float64
	n := float64(len(points))
	for _, p := range points {
		x, y, xx, xy = x+p.x, y+p.y, xx+p.x*p.x, xy+p.x*p.y
	}
	l := line{slope: (n*xy - x*y) / (n*xx - x*x)}
	l.base = (y - l.slope*x) / n
	for _, p := range points {
		if p.y != 0 {
			l.off = max(l.off, math.Abs(l.at(p.x)/p.y-1))
		}
	}
	return l
}

// power is y = factor·x^exponent.
type power struct{ factor, exponent, off float64 }

func (p power) at(x float64) float64 { return p.factor * math.Pow(x, p.exponent) }

// fitPower returns the power with the least squares of the logarithms. For a single point, the exponent is 1.
func fitPower(points []point) power {
	fit := power{exponent: 1, factor: points[0].y / points[0].x}
	if len(points) > 1 {
		var logs []point
		for _, p := range points {
			logs = append(logs, point{x: math.Log(p.x), y: math.Log(p.y)})
		}
		l := fitLine(logs)
		fit = power{factor: math.Exp(l.base), exponent: l.slope}
	}
	for _, p := range points {
		fit.off = max(fit.off, math.Abs(fit.at(p.x)/p.y-1))
	}
	return fit
}
