package main

import "fmt"

// How long the fan-out with a limit may take, and what it may cost the control plane, as multiples of the floor with the same limit.
const (
	fanOutAtMost     = 1.2
	fanOutBillAtMost = 1.1
)

// fanOutLines returns the lines of the fan-out. The floor has no waves, so their lines have no target.
func (r *report) fanOutLines() []line {
	limited, unlimited := way{limit: fanOutLimit}, way{}
	limitedWaves, unlimitedWaves := way{limit: fanOutLimit, inWaves: true}, way{inWaves: true}
	atOnce := fmt.Sprintf("at most %d at a time", fanOutLimit)
	inWaves := fmt.Sprintf("in %d waves", fanOutWaves)
	what := fmt.Sprintf("One Secret of %d Deployments with a pod each, %s: written to last rollout complete", r.settings.fanOut, atOnce)
	return []line{
		r.atMost(limited.name(), what, "%.1f s", fanOutAtMost),
		r.atMost(limited.name()+ofServers, "CPU time of the control plane, for each, until all Kubernetes Events are written",
			"%.1f ms", fanOutBillAtMost),
		r.info(limitedWaves.name(), "The same, "+inWaves, "%.1f s"),
		r.info(unlimited.name(), "The same, without limit", "%.1f s"),
		r.info(unlimitedWaves.name(), "The same, without limit, "+inWaves, "%.1f s"),
		r.info(limited.name()+cpuOfPatching, "CPU time of the process that patches, for each, "+atOnce, "%.2f ms"),
	}
}
