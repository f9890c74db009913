package main

import "fmt"

// fanOutAtMost is how long the fan-out with a limit may take, as a multiple of the floor with the same limit.
const fanOutAtMost = 1.3

// fanOutLines returns the lines of the fan-out. The floor has no waves, so their lines have no target.
func (r *report) fanOutLines() []line {
	limited, unlimited := way{limit: fanOutLimit}, way{}
	limitedWaves, unlimitedWaves := way{limit: fanOutLimit, inWaves: true}, way{inWaves: true}
	atOnce := fmt.Sprintf("at most %d at a time", fanOutLimit)
	inWaves := fmt.Sprintf("in %d waves", fanOutWaves)
	what := fmt.Sprintf("One Secret of %d Deployments with a pod each, %s: written to last rollout complete", r.settings.fanOut, atOnce)
	const cpu = "CPU time for each of these Deployments of the process that patches, "
	return []line{
		r.atMost(limited.name(), what, "%.1f s", fanOutAtMost),
		r.info(limitedWaves.name(), "The same, "+inWaves, "%.1f s"),
		r.info(unlimited.name(), "The same, without limit", "%.1f s"),
		r.info(unlimitedWaves.name(), "The same, without limit, "+inWaves, "%.1f s"),
		r.info(limited.name()+cpuOfPatching, cpu+atOnce, "%.2f ms"),
		r.info(limitedWaves.name()+cpuOfPatching, cpu+atOnce+", "+inWaves, "%.2f ms"),
		r.info(unlimited.name()+cpuOfPatching, cpu+"without limit", "%.2f ms"),
		r.info(unlimitedWaves.name()+cpuOfPatching, cpu+"without limit, "+inWaves, "%.2f ms"),
	}
}
