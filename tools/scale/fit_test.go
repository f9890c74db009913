package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestLines(t *testing.T) {
	tests := []struct {
		name   string
		points []point
		want   line
	}{
		{name: "one point", points: []point{{50, 100}}, want: line{slope: 2}},
		{name: "two points are met", points: []point{{50, 200}, {100, 300}}, want: line{base: 100, slope: 2}},
		{name: "three on a line are, too", points: []point{{50, 200}, {100, 300}, {200, 500}}, want: line{base: 100, slope: 2}},
		{name: "three that are not on one", points: []point{{0, 1}, {1, 4}, {2, 1}}, want: line{base: 2, slope: 0, off: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "the line", tt.want, fitLine(tt.points), cmp.AllowUnexported(line{}), cmpopts.EquateApprox(0, 1e-9))
		})
	}
}

func TestPowers(t *testing.T) {
	tests := []struct {
		name   string
		points []point
		want   power
	}{
		{name: "one point", points: []point{{25, 5}}, want: power{factor: 0.2, exponent: 1}},
		{name: "a square", points: []point{{1, 3}, {2, 12}, {4, 48}}, want: power{factor: 3, exponent: 2}},
		{name: "no power", points: []point{{1, 1}, {2, 8}, {4, 1}}, want: power{factor: 2, exponent: 0, off: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "the power", tt.want, fitPower(tt.points), cmp.AllowUnexported(power{}), cmpopts.EquateApprox(0, 1e-9))
		})
	}
}
