package main

import (
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		name       string
		values     []float64
		part, want float64
	}{
		{name: "of nothing", part: 0.5, want: 0},
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

func TestARatioIsThatOfEachRound(t *testing.T) {
	rounds := func(values ...float64) (samples []float64) {
		for _, value := range values {
			for i := range sharedInRound {
				samples = append(samples, value*float64(i+1))
			}
		}
		return samples
	}
	r := results{
		shared:    {contenderConfined: rounds(1, 10, 100), contenderKeyturn: rounds(2, 10, 150)},
		burst1000: {contenderConfined: {100, 0, 50, 40}, contenderKeyturn: {80, 80, 50}},
	}
	for _, tt := range []struct {
		name string
		want []float64
	}{
		{name: shared, want: []float64{2, 1, 1.5}},
		{name: burst1000, want: []float64{0.8, 1}},
		{name: latency},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.ratios(tt.name, contenderKeyturn, contenderConfined, median)
			testkit.WantEqual(t, "ratios", tt.want, got)
		})
	}
}
