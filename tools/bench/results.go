package main

import "slices"

// results are the samples of each measurement and contender, in the order in which they were taken.
type results map[string]map[string][]float64

func (r results) add(name string, c contender, value float64) {
	if r[name] == nil {
		r[name] = make(map[string][]float64)
	}
	r[name][c.name()] = append(r[name][c.name()], value)
}

func (r results) of(name, contender string) []float64 { return r[name][contender] }

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
