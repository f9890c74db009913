package main

import (
	"fmt"
	"slices"
)

// The memory that the programs may use together among 20,000 Secrets, in MB. That of NATS counts, of which its container needs 28 more than NATS in
// the actuator: see docs/adr/0053-nats-runs-in-a-container-of-its-own.md.
const (
	ofContainer                           = 28
	residentBelow, anonymousBelow         = 60 + ofContainer, 40
	residentBusyBelow, anonymousBusyBelow = 110 + ofContainer, 90
	peakBelow                             = 200
)

// memoryLines returns the lines about memory, and about what the programs do while nothing changes.
func (r *report) memoryLines() []line {
	lines := []line{
		r.sizeBelow(resident, r.among("Resident memory of the programs and NATS"), residentBelow),
		r.sizeBelow(resident+anonymous, "Of which anonymous", anonymousBelow),
		r.sizeBelow(residentBusy, r.among("Resident memory right after 300 changes"), residentBusyBelow),
		r.sizeBelow(residentBusy+anonymous, "Of which anonymous", anonymousBusyBelow),
		r.sizeBelow(peak, r.among("Peak memory while they list and publish one event for each"), peakBelow),
		r.info(residentFirst, r.among("Resident memory after that, before a restart"), "%.0f MB"),
		r.info(firstLook, r.among("Time until all are published and read at the first start"), "%.1f s"),
	}
	return slices.Concat(lines, r.programLines(resident, "Resident memory", "%.0f MB"),
		r.programLines(resident+anonymous, "Anonymous memory", "%.0f MB"),
		r.programLines(residentBusy, "Resident memory right after 300 changes", "%.0f MB"),
		r.programLines(residentBusy+anonymous, "Anonymous memory right after 300 changes", "%.0f MB"),
		r.programLines(peak, "Peak memory", "%.0f MB"), r.programLines(idle, "Idle, CPU time per second", "%.1f ms"))
}

func (r *report) among(what string) string {
	return fmt.Sprintf("%s, among %d Secrets of %d kB", what, r.cluster.bystanders, bystanderSize/1000)
}

// sizeBelow returns a line with a bound in MB.
func (r *report) sizeBelow(name, what string, most float64) line {
	return r.below(name, what, "%.0f MB", most, fmt.Sprintf("at most %g MB", most))
}
