package main

import (
	"fmt"
	"slices"
)

// atWorst is how much worse what replaces Reloader may be than plain Keyturn.
const atWorst = 1.2

// modeLine is a line of the table about what replaces Reloader. All figures are medians of the ratios of all rounds, to the floor and to Keyturn.
type modeLine struct {
	What string
	// Keyturn, Mode and Command are ratios to the floor.
	Keyturn, Mode, Command string
	// ModeToKeyturn and CommandToKeyturn are ratios to Keyturn.
	ModeToKeyturn, CommandToKeyturn string
	Target, Verdict                 string
}

// modeLines returns the lines of everything that was measured of these contenders. Two lines have no target: an additional
// Kubernetes Event for each roll is the purpose of the mode, and the idle time is only a few ticks of the kernel's clock.
func (r *report) modeLines() []modeLine {
	lines := []modeLine{
		r.modeLine(latency, "One change: Secret written to template patched", median, higherIsWorse),
		r.modeLine(latency, "The same, 90th percentile", ninth, higherIsWorse),
		r.modeLine(burst300, r.changes(300), median, lowerIsWorse),
		r.modeLine(burst1000, r.changes(1000), median, lowerIsWorse),
		r.modeLine(shared, fmt.Sprintf("One Secret of %d Deployments: written to last template patched", r.cluster.perSpace), median, higherIsWorse),
		r.modeLine(kubeEvents, "Requests for Kubernetes Events per rolled workload, during the measurement", median, noneIsWorse),
		r.modeLine(otherRequests, "Other API requests per rolled workload", median, higherIsWorse),
		r.modeLine(burst1000+untilPatched, "CPU time per change, of 1,000, until all are patched", median, higherIsWorse),
		r.modeLine(burst1000+untilTold, "The same, until the controllers have finished and all outcomes are published", median, higherIsWorse),
		r.modeLine(resident, r.among("Resident memory"), median, higherIsWorse),
		r.modeLine(peak, r.among("Peak memory while they are listed and published"), median, higherIsWorse),
		r.modeLine(residentFirst, r.among("Resident memory after that, before a restart"), median, higherIsWorse),
		r.modeLine(residentBusy, r.among("Resident memory right after 300 changes"), median, higherIsWorse),
		r.modeLine(firstLook, r.among("Time until all are published and read at the first start"), median, higherIsWorse),
		r.modeLine(idle, "Idle, CPU time per second", median, noneIsWorse),
	}
	return slices.DeleteFunc(lines, func(l modeLine) bool { return l.ModeToKeyturn == "" && l.CommandToKeyturn == "" })
}

// direction says which ratio to Keyturn is worse.
type direction int

const (
	higherIsWorse direction = iota
	lowerIsWorse
	noneIsWorse
)

// misses reports whether a ratio to Keyturn misses the target.
func (d direction) misses(ratio float64) bool {
	return d == higherIsWorse && ratio > atWorst || d == lowerIsWorse && ratio < 1/atWorst
}

// target returns the target in words, or "" if there is none.
func (d direction) target() string {
	switch d {
	case higherIsWorse:
		return fmt.Sprintf("at most %g× Keyturn", atWorst)
	case lowerIsWorse:
		return fmt.Sprintf("at least %.2f× Keyturn", 1/atWorst)
	case noneIsWorse:
	}
	return ""
}

// modeLine returns a line that compares what of returns for the samples of each contender.
func (r *report) modeLine(name, what string, of func([]float64) float64, d direction) modeLine {
	ratioOf := func(contender, base string) (ratio float64, text string) {
		ratios := r.results.ratios(name, contender, base, of)
		if len(ratios) == 0 {
			return 0, ""
		}
		return median(ratios), fmt.Sprintf("%.2f", median(ratios))
	}
	l := modeLine{What: what, Target: d.target()}
	_, l.Keyturn = ratioOf(contenderKeyturn, contenderConfined)
	_, l.Mode = ratioOf(contenderMode, contenderConfined)
	_, l.Command = ratioOf(contenderCommand, contenderConfined)
	var mode, command float64
	mode, l.ModeToKeyturn = ratioOf(contenderMode, contenderKeyturn)
	command, l.CommandToKeyturn = ratioOf(contenderCommand, contenderKeyturn)
	if l.Target != "" {
		l.Verdict = verdict((l.ModeToKeyturn == "" || !d.misses(mode)) && (l.CommandToKeyturn == "" || !d.misses(command)))
	}
	return l
}
