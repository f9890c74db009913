package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run has shown.
type report struct {
	settings settings
	// empty is what a server takes without any cluster.
	empty usage
	rows  []row
}

// projected is the number of clusters that the arithmetic is for.
const projected = 2000

var columns = []string{
	"clusters", "sources", "events/s, first", "events/s, sustained", "median", "99 of 100", "cores", "memory", "disk", "catching up", "tried again",
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
	say("# Many clusters on one NATS: what it costs")
	say("")
	say("`make scale` writes this page. %d NATS servers on one machine of %d cores have the streams of all clusters, each on all servers. The clusters are",
		replicas, runtime.NumCPU())
	say("made up: what the watchers of clusters with %s sources of %d keys would say goes through the codec and the bus of the real one, over a connection",
		thousands(r.settings.sources), dataKeys)
	say("for each. The generator runs on the same cores, so a NATS of its own does more.")
	say("")
	say("| %s |", strings.Join(columns, " | "))
	say("|%s", strings.Repeat(" ---: |", len(columns)))
	for i := range r.rows {
		say("| %s |", strings.Join(r.rows[i].cells(), " | "))
	}
	say("")
	say("- *events/s, first*: every source is said for the first time, as when all clusters join at once. An event is two messages, on HISTORY and on")
	say("  CHANGES, each stored %d times.", replicas)
	say("- *events/s, sustained*: changes of all clusters for %s without a pause, with %d publications of each under way. *median* and *99 of 100* are", r.settings.sustain, workers)
	say("  how long one takes then, and *cores* what a server uses.")
	say("- *memory*, *disk*: of a server, after all of that. HISTORY keeps 512 MiB, so it grows no further.")
	say("- *catching up*: half of the clusters were away while %.0f %% of their sources changed, and come back in the same moment. Each reads its state from", 100*r.settings.changed)
	say("  the stream and says what differs. It is what changed that counts, not how long they were away: a source that changed often is said once.")
	say("- *tried again*: publications and readings of the state that the servers did not answer in time, and that were made once more. A watcher does the same.")
	say("")
	say("## 2,000 clusters")
	say("")
	say("| | |")
	say("| --- | ---: |")
	say("| sources, at %s a cluster | %s |", thousands(r.settings.sources), thousands(sources))
	say("| memory of a server, at %.0f bytes for each further source | %s |", memory, megabytes(last.usage.memory+int64(memory*float64(sources-last.sources))))
	say("| disk of a server, at %.0f bytes for each further source | %s |", disk, megabytes(last.usage.disk+int64(disk*float64(sources-last.sources))))
	say("| events, if each source changes once a day | %.0f/s, %.1f %% of what was sustained here |", daily, 100*daily/last.sustained)
	say("| all clusters join at once | %s |", time.Duration(float64(sources)/last.fill*float64(time.Second)).Round(time.Minute))
	say("| half of them come back at once, with %.0f %% changed, at %.0f^%.1f times as long as above | %s |",
		100*r.settings.changed, factor, power, back.Round(time.Minute))
	say("")
	say("The rate is not what ends it. It is that everybody reads one large stream when all come back at once, each to find its own sources in it, and that each")
	say("server has all of it in memory. What to change, in this order:")
	say("")
	say("1. **Leave the state in the clusters.** A leaf node with its own JetStream in each cluster ([many clusters](many-clusters.md)) keeps CHANGES and")
	say("   HISTORY there. The hub keeps FLEET alone: one message for each event instead of two, and no publication waits for the hub.")
	say("2. **Several hubs** of some hundred clusters each, by region.")
	say("3. **Fewer sources.** `--selector` and `--sources` leave out at the API server what no workload reads.")
	say("4. **HISTORY** shorter than 512 MiB on the hub (`max_bytes`), where the disk is what is short.")
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
