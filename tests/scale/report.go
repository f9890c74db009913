package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report has the results of a run.
type report struct {
	settings settings
	// empty is the usage of a server without any cluster.
	empty usage
	rows  []row
}

// projected is the number of clusters that the arithmetic is for.
const projected = 2000

var columns = []string{
	"clusters", "sources", "events/s, first", "events/s, sustained", "median", "p99", "cores", "memory", "disk", "catch-up", "retries",
}

func (row *row) cells() []string {
	return []string{
		fmt.Sprint(row.clusters), thousands(row.sources), thousands(int(row.fill)), thousands(int(row.sustained)),
		row.median.Round(time.Millisecond).String(), row.late.Round(time.Millisecond).String(), fmt.Sprintf("%.2f", row.cores),
		megabytes(row.usage.memory), megabytes(row.usage.disk),
		fmt.Sprintf("%s for %s of %d", row.catchUp.Round(100*time.Millisecond), thousands(row.missed), row.away), thousands(int(row.retried)),
	}
}

// table is for the terminal.
func (r *report) table() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for i := range r.rows {
		fmt.Fprintln(table, strings.Join(r.rows[i].cells(), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err.Error()
	}
	return out.String()
}

// growth is how many bytes of memory and of disk one more source takes on each server.
func (r *report) growth() (memory, disk float64) {
	first, last := r.rows[0], r.rows[len(r.rows)-1]
	from, sources := first.usage, float64(last.sources-first.sources)
	if len(r.rows) == 1 {
		from, sources = r.empty, float64(last.sources)
	}
	return float64(last.usage.memory-from.memory) / sources, float64(last.usage.disk-from.disk) / sources
}

// power is how the time to catch up grows with the number of clusters: twice as many take 2^power times as long.
func (r *report) power() float64 {
	first, last := r.rows[0], r.rows[len(r.rows)-1]
	if len(r.rows) == 1 {
		return 1
	}
	return math.Log(last.catchUp.Seconds()/first.catchUp.Seconds()) / math.Log(float64(last.away)/float64(first.away))
}

// page is docs/scale.md.
func (r *report) page() string {
	last := r.rows[len(r.rows)-1]
	memory, disk := r.growth()
	sources := projected * r.settings.sources
	daily := float64(sources) / (24 * 60 * 60)
	factor, power := projected/float64(last.clusters), r.power()
	back := time.Duration(float64(last.catchUp) * math.Pow(factor, power))
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("# What a hub costs")
	say("")
	say("Measured load of [many clusters](many-clusters.md) whose streams are all on one NATS: %d servers on one machine of %d cores, with each stream", replicas, runtime.NumCPU())
	say("on all three. The clusters are simulated, each with %s sources of %d keys and a connection of its own, through the real codec and bus. The", thousands(r.settings.sources), dataKeys)
	say("generator uses the same cores, so a dedicated NATS handles more. `make scale` prints this page.")
	say("")
	say("| %s |", strings.Join(columns, " | "))
	say("|%s", strings.Repeat(" ---: |", len(columns)))
	for i := range r.rows {
		say("| %s |", strings.Join(r.rows[i].cells(), " | "))
	}
	say("")
	say("- *events/s, first*: all clusters join at once and publish every source. An event is two messages, on HISTORY")
	say("  and on CHANGES, each stored %d times.", replicas)
	say("- *events/s, sustained*: changes from all clusters for %s without a pause, with %d publications of each in flight. *median* and *p99* are the", r.settings.sustain, workers)
	say("  latency of one publication, and *cores* is the CPU use of one server.")
	say("- *memory*, *disk*: of one server, afterwards. HISTORY keeps 512 MiB and grows no further.")
	say("- *catch-up*: half of the clusters were down while %.0f %% of their sources changed, and reconnect at the same moment. Each reads its state", 100*r.settings.changed)
	say("  from the stream and publishes the differences.")
	say("- *retries*: publications and reads of the state that timed out and were repeated.")
	say("")
	say("## Projection to %s clusters", thousands(projected))
	say("")
	say("| | |")
	say("| --- | ---: |")
	say("| sources, at %s per cluster | %s |", thousands(r.settings.sources), thousands(sources))
	say("| memory per server, at %.0f bytes per additional source | %s |", memory, megabytes(last.usage.memory+int64(memory*float64(sources-last.sources))))
	say("| disk per server, at %.0f bytes per additional source | %s |", disk, megabytes(last.usage.disk+int64(disk*float64(sources-last.sources))))
	say("| events, if each source changes once a day | %.0f/s, %.1f %% of the sustained rate above |", daily, 100*daily/last.sustained)
	say("| all clusters join at once | %s |", time.Duration(float64(sources)/last.fill*float64(time.Second)).Round(time.Minute))
	say("| half of them reconnect at once, with %.0f %% changed, at %.0f^%.1f times as long as above | %s |",
		100*r.settings.changed, factor, power, back.Round(time.Minute))
	say("")
	say("The limit is not the event rate: every cluster that reconnects reads its sources from one large stream, and each")
	say("server keeps all of it in memory. To go further, in this order:")
	say("")
	say("1. **Keep the state in the clusters.** With [leaf nodes](many-clusters.md#clusters-with-leaf-nodes) CHANGES and HISTORY stay there. The hub")
	say("   keeps only FLEET: one message per event instead of two, and no publication waits for the hub.")
	say("2. **Run several hubs** of a few hundred clusters each, by region.")
	say("3. **Watch fewer sources.** `--selector` and `--sources` exclude at the API server what no workload reads.")
	say("4. **Shorten HISTORY** on the hub below 512 MiB (`max_bytes`) if disk is the bottleneck.")
	return out.String()
}

func megabytes(n int64) string { return thousands(int(n>>20)) + " MiB" }

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
