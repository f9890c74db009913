package main

import (
	"slices"
	"strings"
)

// results are the samples of each measurement and contender, in the order in which they were taken.
type results map[string]map[string][]float64

func (r results) add(name string, c contender, value float64) {
	if r[name] == nil {
		r[name] = make(map[string][]float64)
	}
	r[name][c.name()] = append(r[name][c.name()], value)
}

func (r results) of(name, contender string) []float64 { return r[name][contender] }

// inRound returns how many samples of a measurement and a contender a round has.
func inRound(name string) int {
	switch {
	case name == latency, name == largeLatency, name == oldLatency:
		return samplesInRound
	case name == shared:
		return sharedInRound
	case strings.HasPrefix(name, burst300):
		return smallBurstsInRound
	}
	return 1
}

// ratios returns, for each round, the ratio of what of returns for the samples of a contender to what it returns for those of another.
func (r results) ratios(name, contender, base string, of func([]float64) float64) []float64 {
	ours, theirs, n := r.of(name, contender), r.of(name, base), inRound(name)
	var ratios []float64
	for start := 0; start < min(len(ours), len(theirs)); start += n {
		below := of(theirs[start:min(start+n, len(theirs))])
		if below > 0 {
			ratios = append(ratios, of(ours[start:min(start+n, len(ours))])/below)
		}
	}
	return ratios
}

// median returns the median of the values, or 0 if there are none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the value below which the given part of the values lies, interpolated between two of them.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	place := part * float64(len(sorted)-1)
	below := int(place)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (place-float64(below))*(sorted[below+1]-sorted[below])
}
