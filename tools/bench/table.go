package main

import (
	"fmt"
	"slices"
	"strings"
)

// line is one line of the report, with a figure of both contenders or of Keyturn alone.
type line struct {
	what           string
	floor, keyturn string
	ratio          string
	target         string
	verdict        string
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
		r.atMost(latency, "One change: Secret written to template patched", "%.1f ms", 3),
		r.quantiles(latency, "The same, 90th percentile", "%.1f ms"),
		r.atLeast(burst300, r.changes(300), "%.0f/s", 0.7),
		r.atLeast(burst1000, r.changes(1000), "%.0f/s", 0.7),
		r.cost(0.9),
		r.atMost(shared, fmt.Sprintf("One Secret of %d Deployments: written to last template patched", r.cluster.perSpace), "%.0f ms", 2),
		r.below(requests, "API requests per rolled workload", "%.3f", 1, "at most 1"),
		r.info(kubeEvents, "Kubernetes Events per rolled workload, during the measurement", "%.2f"),
		r.underThePolicy(latency, "One change, where the floor is under the actuator's admission policy, too", "%.1f ms"),
		r.underThePolicy(burst300, r.changes(300)+", the same", "%.0f/s"),
		r.underThePolicy(burst1000, r.changes(1000)+", the same", "%.0f/s"),
		r.underThePolicy(shared, fmt.Sprintf("One Secret of %d Deployments, the same", r.cluster.perSpace), "%.0f ms"),
		r.info(burst1000+untilPatched, "CPU time per change, of 1,000, until all are patched", "%.1f ms"),
		r.info(burst1000+untilPatched+ofWatcher, "Of which the watcher", "%.2f ms"),
		r.info(burst1000+untilPatched+ofActuator, "Of which the actuator with NATS", "%.2f ms"),
		r.info(burst1000+untilPatched+ofServers, "Of the control plane, in the same time", "%.1f ms"),
		r.info(burst1000+untilQuiet, "CPU time per change, until the controllers have finished and all outcomes are published", "%.1f ms"),
		r.info(burst1000+untilQuiet+ofWatcher, "Of which the watcher", "%.2f ms"),
		r.info(burst1000+untilQuiet+ofActuator, "Of which the actuator with NATS", "%.2f ms"),
		r.info(burst1000+untilQuiet+ofServers, "Of the control plane, in the same time", "%.1f ms"),
		r.below(resident, r.among("Resident memory of both programs"), "%.0f MB", 120, "below 120 MB"),
		r.below(peak, r.among("Peak memory of both while they list and publish one event for each"), "%.0f MB", 200, "below 200 MB"),
		r.info(residentFirst, r.among("Resident memory after that, before a restart"), "%.0f MB"),
		r.info(residentBusy, r.among("Resident memory right after 300 changes"), "%.0f MB"),
		r.info(residentBusy+ofWatcher, "Of which the watcher", "%.0f MB"),
		r.info(residentBusy+ofActuator, "Of which the actuator with NATS", "%.0f MB"),
		r.info(peak+ofWatcher, r.among("Peak memory of the watcher"), "%.0f MB"),
		r.info(peak+ofActuator, r.among("Peak memory of the actuator with NATS"), "%.0f MB"),
		r.info(firstLook, r.among("Time until all are published and read at the first start"), "%.1f s"),
		r.info(idle+ofWatcher, "Idle watcher, CPU time per second", "%.1f ms"),
		r.info(idle+ofActuator, "Idle actuator with NATS, CPU time per second", "%.1f ms"),
	}
	var measured []line
	for _, l := range slices.Concat(lines, r.fanOutLines(), r.largeLines()) {
		if l.keyturn != "" {
			measured = append(measured, l)
		}
	}
	return measured
}

func (r *report) changes(n int) string {
	return fmt.Sprintf("%d simultaneous changes, each of one Deployment's Secret", int(float64(n)*r.settings.scale))
}

func (r *report) among(what string) string {
	return fmt.Sprintf("%s, among %d Secrets of %d kB", what, r.cluster.bystanders, bystanderSize/1000)
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
	l := line{what: what}
	l.floor, l.keyturn = figure(format, r.results.of(name, contenderFloor)), figure(format, r.results.of(name, contenderKeyturn))
	if l.floor != "" && l.keyturn != "" && r.ratio(name) > 0 {
		l.ratio = fmt.Sprintf("%.2f", r.ratio(name))
	}
	return l
}

// mostSamples is the part of the samples that lines of quantiles are about.
const mostSamples = 0.9

// quantiles returns a line with the values below which nine of ten samples are.
func (r *report) quantiles(name, what, format string) line {
	l := line{what: what}
	floor, keyturn := r.results.of(name, contenderFloor), r.results.of(name, contenderKeyturn)
	if len(floor) == 0 || len(keyturn) == 0 {
		return l
	}
	l.floor, l.keyturn = fmt.Sprintf(format, quantile(floor, mostSamples)), fmt.Sprintf(format, quantile(keyturn, mostSamples))
	l.ratio = fmt.Sprintf("%.2f", quantile(keyturn, mostSamples)/quantile(floor, mostSamples))
	return l
}

// ratio returns the ratio of Keyturn's median to that of the floor.
func (r *report) ratio(name string) float64 {
	floor := median(r.results.of(name, contenderFloor))
	if floor == 0 {
		return 0
	}
	return median(r.results.of(name, contenderKeyturn)) / floor
}

func (r *report) atMost(name, what, format string, most float64) line {
	l := r.info(name, what, format)
	l.target, l.verdict = fmt.Sprintf("at most %g×", most), verdict(r.ratio(name) <= most)
	return l
}

func (r *report) atLeast(name, what, format string, least float64) line {
	l := r.info(name, what, format)
	l.target, l.verdict = fmt.Sprintf("at least %g×", least), verdict(r.ratio(name) >= least)
	return l
}

// cost returns the line about the cost of tracing. Its ratio is that of the rate with every span exported to the rate
// without.
func (r *report) cost(least float64) line {
	with, without := r.results.of(burst300, contenderTraced), r.results.of(burst300, contenderKeyturn)
	if len(with) == 0 || len(without) == 0 {
		return line{}
	}
	ratio := median(with) / median(without)
	return line{
		what:    fmt.Sprintf("%s, every span exported; %.0f/s without traces", r.changes(300), median(without)),
		keyturn: fmt.Sprintf("%.0f/s", median(with)), ratio: fmt.Sprintf("%.2f", ratio),
		target: fmt.Sprintf("at least %g×", least), verdict: verdict(ratio >= least),
	}
}

// underThePolicy returns a line with the confined floor instead of the floor.
func (r *report) underThePolicy(name, what, format string) line {
	floor, keyturn := r.results.of(name, contenderConfined), r.results.of(name, contenderKeyturn)
	if len(floor) == 0 || len(keyturn) == 0 {
		return line{}
	}
	return line{
		what: what, floor: figure(format, floor), keyturn: figure(format, keyturn),
		ratio: fmt.Sprintf("%.2f", median(keyturn)/median(floor)),
	}
}

// below returns a line whose target is not a ratio.
func (r *report) below(name, what, format string, most float64, target string) line {
	l := r.info(name, what, format)
	l.target, l.verdict = target, verdict(median(r.results.of(name, contenderKeyturn)) <= most)
	return l
}
