package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// report has the results.
type report struct {
	settings  settings
	evidence  evidence
	faults    []inflicted
	incidents []incident
}

// failed reports whether anything was wrong.
func (r *report) failed() bool { return len(r.incidents) > 0 }

// print writes the evidence and the figures. The tables are Markdown.
func (r *report) print(w io.Writer) {
	const most = 20
	for n, i := range r.incidents {
		if n == most {
			fmt.Fprintf(w, "... and %d more\n\n", len(r.incidents)-most)
			break
		}
		fmt.Fprintf(w, "%s: %s %s\n", strings.ToUpper(string(i.ill)), i.workload, i.detail)
		for _, line := range r.story(i) {
			fmt.Fprintln(w, "   ", line)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "Seed %d, %s with faults, %d workloads, %d actuators\n\n",
		r.settings.seed, r.settings.duration, r.settings.workloads, r.settings.actuators)
	columns := []string{"Fault", "Times", "Longest, until all was ready", "Changes", "Rolls", "Lost", "Doubled", "Untold", "Broken", "Slowest patch"}
	fmt.Fprintf(w, "| %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)-1))
	for _, row := range r.table() {
		fmt.Fprintf(w, "| %s | %d | %s | %d | %d |", row.kind, row.times, seconds(row.longest), row.changes, row.rolls)
		for _, ill := range ills {
			fmt.Fprintf(w, " %d |", row.wrong[ill])
		}
		fmt.Fprintf(w, " %s |\n", seconds(row.slowest))
	}
	fmt.Fprintf(w, "\n%d writes, and %d rolls:", r.writes(), r.evidence.journal.rolls(r.evidence.from))
	for _, ill := range ills {
		fmt.Fprintf(w, " %d %s", count(r.incidents, ill), ill)
	}
	fmt.Fprintln(w)
}

func (r *report) writes() int {
	n := 0
	for _, writes := range r.evidence.journal.writes {
		for _, w := range writes {
			if w.version > r.evidence.from {
				n++
			}
		}
	}
	return n
}

func seconds(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
