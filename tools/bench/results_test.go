package main

import "testing"

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		name       string
		values     []float64
		part, want float64
	}{
		{name: "of nothing", part: 0.5, want: 0},
		{name: "of one", values: []float64{7}, part: 0.9, want: 7},
		{name: "the middle of three, in any order", values: []float64{9, 1, 4}, part: 0.5, want: 4},
		{name: "between the middle two of four", values: []float64{4, 1, 2, 9}, part: 0.5, want: 3},
		{name: "nine of ten", values: []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, part: 0.9, want: 9},
		{name: "the largest", values: []float64{3, 5, 4}, part: 1, want: 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := quantile(tt.values, tt.part); got != tt.want {
				t.Errorf("got %g, want %g", got, tt.want)
			}
		})
	}
}
