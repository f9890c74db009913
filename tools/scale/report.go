package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"
)

// report has the results of a run.
type report struct {
	settings settings
	// own is the result for clusters with their own streams. shared is that for clusters that share one set of streams, or nil if
	// it was not measured.
	own, shared *result
}

// projected is the number of clusters that the projection is for.
const projected = 2000

// tables returns the tables for the terminal.
func (r *report) tables() string {
	if r.shared == nil {
		return r.own.table()
	}
	return "streams of their own\n" + r.own.table() + "\none set of streams\n" + r.shared.table()
}

// page returns the content of docs/scale.md.
func (r *report) page() string {
	s := r.settings
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("# What a hub costs")
	say("")
	say("Measured load of [many clusters](many-clusters.md) on the hub, without leaf nodes: %d servers on one machine of %d cores, with the accounts, users, TLS", replicas, runtime.NumCPU())
	say("and streams of `render.sh`, each stream on all three. The clusters are simulated, each with %s sources of %d keys and a connection of its own, through", thousands(s.sources), dataKeys)
	say("the real codec and bus. The generator uses the same cores, so a dedicated NATS handles more. `make scale` prints this page.")
	say("")
	out.WriteString(r.own.markdown())
	say("")
	say("- *declared*: how long it takes to declare the streams of one cluster, one after the other.")
	say("- *events/s, first*: all clusters join at once and publish every source. An event is four messages, on HISTORY and CHANGES of its cluster,")
	say("  on `FLEET-<cluster>` and on FLEET, each stored %d times.", replicas)
	say("- *events/s, sustained*: changes from all clusters for %s without a pause, with %d publications of each in flight. *median* and *p99* are the", s.sustain, workers)
	say("  latency of one publication, and *cores* is the CPU use of one server.")
	say("- *FLEET*: how long FLEET took, at most, to have the last event of each cluster when nobody published any more, and how many of all events it has")
	say("  in the end. Of several changes of a source in quick succession it may get only the last. The run fails if it lacks the last event of any source,")
	say("  or has one twice.")
	say("- *memory*, *disk*: of one server, afterwards, with `GOMEMLIMIT=%s`. A stream that is written keeps its last block in memory, of up to 8 MiB. On disk", memoryLimit)
	say("  HISTORY of each cluster keeps 512 MiB and grows no further, FLEET keeps %s.", mebibytes(float64(r.own.fleetBytes)))
	say("- *catch-up*: half of the clusters were down while %.0f %% of their sources changed, and reconnect at the same moment. Each reads its state", 100*s.changed)
	say("  from its stream and publishes the differences.")
	say("- *retries*: publications and reads of the state that timed out and were repeated.")
	say("")
	r.project(say)
	r.compare(say)
	say("## To go further")
	say("")
	say("In this order:")
	say("")
	say("1. **Keep the state in the clusters.** With [leaf nodes](many-clusters.md#clusters-with-leaf-nodes) CHANGES and HISTORY stay there. The hub keeps")
	say("   only `FLEET-<cluster>` and FLEET: two messages per event instead of four, and no publication waits for the hub.")
	say("2. **Run several hubs** of a few hundred clusters each, by region.")
	say("3. **Watch fewer sources.** `--selector` and `--sources` exclude at the API server what no workload reads.")
	say("4. **Shorten HISTORY** below 512 MiB (`max_bytes`) if disk is the bottleneck.")
	return out.String()
}

// project writes what the numbers mean for many more clusters, with the laws that they are assumed to follow.
func (r *report) project(say func(string, ...any)) {
	rows := r.own.rows
	last := rows[len(rows)-1]
	memory := fitLine(points(rows, func(row *row) (x, y float64) { return float64(row.clusters), float64(row.usage.memory) }))
	disk := fitLine(points(rows, func(row *row) (x, y float64) { return float64(row.events), float64(row.usage.disk) }))
	back := r.own.catchUp()
	sources := projected * r.settings.sources
	daily := float64(sources) / (24 * time.Hour).Seconds()
	say("## Projection to %s clusters", thousands(projected))
	say("")
	say("Nobody has measured that many. These laws are fitted to the %d rows above by least squares, and extended %.0f times as far:", len(rows), math.Round(projected/float64(last.clusters)))
	say("")
	say("| | Law | Worst fit of a row | At %s clusters |", thousands(projected))
	say("| --- | --- | ---: | ---: |")
	say("| memory per server | %s + %.1f MiB for each cluster | %.0f %% | %s |", mebibytes(memory.base), memory.slope/(1<<20), 100*memory.off, mebibytes(memory.at(projected)))
	say("| disk per server, when each source was published once | %s + %.0f bytes for each event | %.0f %% | %s |", mebibytes(disk.base), disk.slope, 100*disk.off, mebibytes(disk.at(float64(sources))))
	say("| half of them reconnect at once, with %.0f %% changed | %.2fs · n^%.2f, of n that reconnect | %.0f %% | %s |",
		100*r.settings.changed, back.factor, back.exponent, 100*back.off, seconds(back.at(projected/2)).Round(time.Second))
	say("| all clusters join at once | %s sources at %s events/s | | %s |", thousands(sources), thousands(int(last.fill)), seconds(float64(sources)/last.fill).Round(time.Minute))
	say("| events, if each source changes once a day | %s sources in a day | | %.0f/s, %.1f %% of the sustained rate |", thousands(sources), daily, 100*daily/last.sustained)
	say("| disk that the streams reserve per server | %s for each cluster, %s for FLEET | | %s |",
		mebibytes(float64(r.own.clusterBytes)), mebibytes(float64(r.own.fleetBytes)), mebibytes(float64(projected*r.own.clusterBytes+r.own.fleetBytes)))
	say("| streams with %d replicas | 4 for each cluster, and FLEET | | %s |", replicas, thousands(4*projected+1))
	say("")
	say("A server refuses a stream that would reserve more than it has: without `max_file` in its configuration, three quarters of what is free on the disk.")
	say("")
}

// compare writes what one set of streams for all clusters would cost, if it was measured.
func (r *report) compare(say func(string, ...any)) {
	if r.shared == nil {
		return
	}
	say("## One set of streams for all clusters")
	say("")
	say("The same clusters in one account, with one CHANGES and one HISTORY and without FLEET: an event is two messages. Every cluster that reconnects reads")
	say("its state from the one large stream, and for n of them that takes n^%.2f as long as for one, instead of n^%.2f.", r.shared.catchUp().exponent, r.own.catchUp().exponent)
	say("")
	say("%s", r.shared.markdown())
}

// catchUp returns how long reconnecting clusters take, in seconds, depending on their number.
func (r *result) catchUp() power {
	return fitPower(points(r.rows, func(row *row) (x, y float64) { return float64(row.away), row.catchUp.Seconds() }))
}

// points returns the points to which a law is fitted.
func points(rows []row, of func(*row) (x, y float64)) []point {
	list := make([]point, len(rows))
	for i := range rows {
		list[i].x, list[i].y = of(&rows[i])
	}
	return list
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
