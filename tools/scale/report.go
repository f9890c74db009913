package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"
)

// projected is the number of clusters that the projection is for.
const projected = 2000

// page returns the content of docs/measured/scale.md.
func (r *report) page() string {
	s := r.settings
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("# What a hub costs\n")
	say("Load on the hub of [many clusters](../how-to/many-clusters.md) without leaf nodes, by simulated clusters of %s sources of %d keys: %d servers on one", thousands(s.sources), dataKeys, replicas)
	say("machine of %d cores, configured by `render.sh`. `make scale` prints this page.\n", runtime.NumCPU())
	say("**Recommendation:** up to %d clusters a hub, as measured. For more see [below](#to-go-further).\n", r.rows[len(r.rows)-1].clusters)
	out.WriteString(r.table())
	say("")
	say("- *declared*: the time for the streams of one cluster.")
	say("- *first*: all clusters join at once. An event is four messages, each stored %d times.", replicas)
	say("- *sustained*: changes from all clusters for %s without a pause. *median* and *p99*: of one publication. *cores*: of one server.", s.sustain)
	say("- *FLEET*: how far it is behind at the end, and how many of all events it has.")
	say("- *memory*, *disk*: of one server, afterwards, with `GOMEMLIMIT=%s`. HISTORY keeps 512 MiB of each cluster, FLEET %s.", memoryLimit, mebibytes(float64(r.fleetBytes)))
	say("- *catch-up*: half of the clusters reconnect at once, after %.0f %% of their sources changed.", 100*s.changed)
	say("- *retries*: of publications and reads that timed out.\n")
	r.project(say)
	say("## To go further\n")
	say("1. **Keep the state in the clusters** with [leaf nodes](../how-to/many-clusters.md#clusters-with-leaf-nodes): two messages per event instead of four.")
	say("2. **Run several hubs** of a few hundred clusters each, by region.")
	say("3. **Watch fewer sources** with `--selector` and `--sources`.")
	say("4. **Shorten HISTORY** (`max_bytes`) if disk is the bottleneck.\n")
	say("## 10,000 clusters, on paper\n")
	say("Neither built nor measured.\n")
	say("- **25 regional hubs**, each with 400 clusters on leaf nodes. At two messages per event a hub then stores as much as the 200 clusters of the table,")
	say("  and reserves 4 GiB for FLEET and 25 GiB for them.")
	say("- **No global copy.** No program needs one: an actuator reads its own cluster alone. It would take the events of all hubs through one leader.")
	say("- **Queries are fanned out**: `kubectl keyturn clusters` and `history` ask each hub, and whoever asks merges the answers by their times.")
	say("- **A hub that is lost** stops no rollout, because the streams are in the clusters. Afterwards they send what it missed.")
	say("- **Kafka is a sink only**, fed by [notifications](../how-to/notifications.md). No program reads from it.")
	return out.String()
}

// project writes what the numbers mean for many more clusters, with the laws that they are assumed to follow.
func (r *report) project(say func(string, ...any)) {
	rows := r.rows
	last := rows[len(rows)-1]
	memory := fitLine(points(rows, func(row *row) (x, y float64) { return float64(row.clusters), float64(row.usage.memory) }))
	disk := fitLine(points(rows, func(row *row) (x, y float64) { return float64(row.events), float64(row.usage.disk) }))
	back := fitPower(points(rows, func(row *row) (x, y float64) { return float64(row.away), row.catchUp.Seconds() }))
	sources := projected * r.settings.sources
	say("## Projection to %s clusters\n", thousands(projected))
	say("Not measured: laws fitted to the %d rows by least squares, and extended %.0f times as far.\n", len(rows), math.Round(projected/float64(last.clusters)))
	say("| | Law | Worst fit of a row | At %s clusters |", thousands(projected))
	say("| --- | --- | ---: | ---: |")
	say("| memory per server | %s + %.1f MiB for each cluster | %.0f %% | %s |", mebibytes(memory.base), memory.slope/(1<<20), 100*memory.off, mebibytes(memory.at(projected)))
	say("| disk per server, when each source was published once | %s + %.0f bytes for each event | %.0f %% | %s |", mebibytes(disk.base), disk.slope, 100*disk.off, mebibytes(disk.at(float64(sources))))
	say("| half of them reconnect at once, with %.0f %% changed | %.2fs · n^%.2f, of n that reconnect | %.0f %% | %s |",
		100*r.settings.changed, back.factor, back.exponent, 100*back.off, seconds(back.at(projected/2)).Round(time.Second))
	say("| disk that the streams reserve per server | %s for each cluster, %s for FLEET | | %s |",
		mebibytes(float64(r.clusterBytes)), mebibytes(float64(r.fleetBytes)), mebibytes(float64(projected*r.clusterBytes+r.fleetBytes)))
	say("")
	say("A server refuses a stream that would reserve more than `max_file`, by default three quarters of what is free on the disk.\n")
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
