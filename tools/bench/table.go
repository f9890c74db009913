package main

import (
	"fmt"
	"slices"
	"strings"
)

// line is one line of the report, with a figure of both contenders or of Keyturn alone. The floor is that under the actuator's admission policies,
// unless the line says that it is not, because any program that may write no more than Keyturn has to pay for them.
type line struct {
	What, Floor, Keyturn, Ratio, Target, Verdict string
}

// The verdicts of a line that has a target.
const (
	met    = "met"
	missed = "missed"
)

func verdict(holds bool) string {
	if holds {
		return met
	}
	return missed
}

// lines returns the lines of everything that was measured.
func (r *report) lines() []line {
	lines := []line{
		r.atMost(latency, "One change: Secret written to template patched", "%.1f ms", 1.2),
		r.quantiles(latency, "The same, 90th percentile", "%.1f ms"),
		r.atLeast(burst300, r.changes(300), "%.0f/s", 0.85),
		r.atLeast(burst1000, r.changes(1000), "%.0f/s", 0.85),
		r.cost(0.9),
		r.secondCore(),
		r.atMost(shared, fmt.Sprintf("One Secret of %d Deployments: written to last template patched", r.cluster.perSpace), "%.0f ms", 1.25),
		r.below(requests, "API requests per rolled workload, during the measurement", "%.3f", 2, "at most 2"),
		r.info(kubeEvents, "Of which for Kubernetes Events", "%.2f"),
		r.below(otherRequests, "Of which for anything else", "%.3f", 1, "at most 1"),
		r.besideBare(latency, "One change, where the floor is under no admission policy", "%.1f ms"),
		r.besideBare(burst300, r.changes(300)+", the same", "%.0f/s"),
		r.besideBare(burst1000, r.changes(1000)+", the same", "%.0f/s"),
		r.besideBare(shared, fmt.Sprintf("One Secret of %d Deployments, the same", r.cluster.perSpace), "%.0f ms"),
		r.info(burst1000+untilPatched, "CPU time per change, of 1,000, until all are patched", "%.1f ms"),
		r.info(burst1000+untilPatched+ofServers, "Of the control plane, in the same time", "%.1f ms"),
		r.info(burst1000+untilTold, "CPU time per change, until all outcomes are published", "%.1f ms"),
		r.info(burst1000+untilTold+ofServers, "Of the control plane, in the same time", "%.1f ms"),
	}
	lines = slices.Concat(lines, r.programLines(burst1000+untilPatched, "CPU time per change until all are patched", "%.2f ms"),
		r.programLines(burst1000+untilTold, "CPU time per change until all outcomes are published", "%.2f ms"), r.memoryLines())
	var measured []line
	for _, l := range slices.Concat(lines, r.podLines(), r.fanOutLines(), r.largeLines()) {
		if l.Keyturn != "" {
			measured = append(measured, l)
		}
	}
	return measured
}

// programLines returns a line for each program.
func (r *report) programLines(name, what, format string) []line {
	return []line{
		r.info(name+ofWatcher, what+", of the watcher", format),
		r.info(name+ofActuator, what+", of the actuator", format),
		r.info(name+ofNATS, what+", of NATS", format),
	}
}

func (r *report) changes(n int) string {
	return fmt.Sprintf("%d simultaneous changes", int(float64(n)*r.settings.scale))
}

// figure formats the median of samples, and their range if they differ. It returns "" if there are none.
func figure(format string, samples []float64) string {
	if len(samples) == 0 {
		return ""
	}
	middle, least, most := fmt.Sprintf(format, median(samples)), fmt.Sprintf(format, slices.Min(samples)), fmt.Sprintf(format, slices.Max(samples))
	if least == most {
		return middle
	}
	bare := func(text string) string { return strings.TrimRight(text, " /msMB") }
	return middle + " (" + bare(least) + " to " + bare(most) + ")"
}

// info returns a line without a target, with medians and ranges.
func (r *report) info(name, what, format string) line {
	return r.beside(contenderConfined, name, what, format)
}

// besideBare returns a line with the floor that is under no policy.
func (r *report) besideBare(name, what, format string) line {
	if len(r.results.of(name, contenderFloor)) == 0 {
		return line{}
	}
	return r.beside(contenderFloor, name, what, format)
}

// beside returns a line without a target, with medians and ranges of Keyturn and of a floor.
func (r *report) beside(floor, name, what, format string) line {
	return line{
		What: what, Floor: figure(format, r.results.of(name, floor)), Keyturn: figure(format, r.results.of(name, contenderKeyturn)),
		Ratio: figure("%.2f", r.results.ratios(name, contenderKeyturn, floor, median)),
	}
}

// mostSamples is the part of the samples that lines of quantiles are about.
const mostSamples = 0.9

// ninth returns the value below which nine of ten samples are.
func ninth(values []float64) float64 { return quantile(values, mostSamples) }

// quantiles returns a line with the values below which nine of ten samples are.
func (r *report) quantiles(name, what, format string) line {
	l := line{What: what}
	floor, keyturn := r.results.of(name, contenderConfined), r.results.of(name, contenderKeyturn)
	if len(floor) == 0 || len(keyturn) == 0 {
		return l
	}
	l.Floor, l.Keyturn = fmt.Sprintf(format, ninth(floor)), fmt.Sprintf(format, ninth(keyturn))
	l.Ratio = figure("%.2f", r.results.ratios(name, contenderKeyturn, contenderConfined, ninth))
	return l
}

// ratio returns the median, over all rounds, of the ratio of Keyturn to the floor.
func (r *report) ratio(name string) float64 {
	return median(r.results.ratios(name, contenderKeyturn, contenderConfined, median))
}

func (r *report) atMost(name, what, format string, most float64) line {
	l := r.info(name, what, format)
	l.Target, l.Verdict = fmt.Sprintf("at most %g×", most), verdict(r.ratio(name) <= most)
	return l
}

func (r *report) atLeast(name, what, format string, least float64) line {
	l := r.info(name, what, format)
	l.Target, l.Verdict = fmt.Sprintf("at least %g×", least), verdict(r.ratio(name) >= least)
	return l
}

// cost returns the line about the cost of tracing. Its ratio is that of the rate with every span exported to the rate
// without.
func (r *report) cost(least float64) line {
	with, without := r.results.of(burst300, contenderTraced), r.results.of(burst300, contenderKeyturn)
	if len(with) == 0 || len(without) == 0 {
		return line{}
	}
	ratios := r.results.ratios(burst300, contenderTraced, contenderKeyturn, median)
	return line{
		What:    fmt.Sprintf("%s, every span exported; %.0f/s without traces", r.changes(300), median(without)),
		Keyturn: fmt.Sprintf("%.0f/s", median(with)), Ratio: figure("%.2f", ratios),
		Target: fmt.Sprintf("at least %g×", least), Verdict: verdict(median(ratios) >= least),
	}
}

// below returns a line whose target is not a ratio.
func (r *report) below(name, what, format string, most float64, target string) line {
	l := r.info(name, what, format)
	l.Target, l.Verdict = target, verdict(median(r.results.of(name, contenderKeyturn)) <= most)
	return l
}
