package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
)

// report has the results.
type report struct {
	results  results
	cluster  *cluster
	facts    []fact
	settings settings
}

// missed reports whether a target was missed.
func (r *report) missed() bool {
	return slices.ContainsFunc(slices.Concat(r.lines(), r.oldLines()), func(l line) bool { return l.Verdict == missed }) ||
		slices.ContainsFunc(r.modeLines(), func(l modeLine) bool { return l.Verdict == missed })
}

// print writes the report for a terminal.
func (r *report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")) }
	row("MEASUREMENT", "FLOOR", "KEYTURN", "RATIO", "TARGET", "")
	for _, l := range r.lines() {
		row(l.What, l.Floor, l.Keyturn, l.Ratio, l.Target, l.Verdict)
	}
	if lines := r.modeLines(); len(lines) > 0 {
		row("\nRATIO", "KEYTURN", "MODE", "MODE", "COMMAND", "COMMAND", "TARGET", "")
		row("", "/FLOOR", "/FLOOR", "/KEYTURN", "/FLOOR", "/KEYTURN", "", "")
		for _, l := range lines {
			row(l.What, l.Keyturn, l.Mode, l.ModeToKeyturn, l.Command, l.CommandToKeyturn, l.Target, l.Verdict)
		}
	}
	if lines := r.oldLines(); len(lines) > 0 {
		row("\nBY TURNS", "EARLIER", "NOW", "RATIO", "TARGET", "")
		for _, l := range lines {
			row(l.What, l.Floor, l.Keyturn, l.Ratio, l.Target, l.Verdict)
		}
	}
	if lines := r.splitLines(); len(lines) > 0 {
		row(append([]string{"\nFOR EACH DEPLOYMENT"}, splitContenders...)...)
		for _, l := range lines {
			row(append([]string{l.What}, l.Figures...)...)
		}
	}
	row()
	for _, f := range r.facts {
		row(f.Name, f.Value)
	}
	// Ignore an error: it means that the terminal is gone.
	_ = table.Flush()
	if r.settings.scale != 1 {
		fmt.Fprintf(w, "\nAt scale %g: the targets are those of scale 1.\n", r.settings.scale)
	}
}

//go:embed benchmarks.md.tmpl
var markdown string

// writeFile writes the report as Markdown, with the method and those results that have a floor or a target.
func (r *report) writeFile(path string) error {
	written, err := template.New("benchmarks.md").Parse(markdown)
	if err != nil {
		return fmt.Errorf("reading the template of the report: %w", err)
	}
	var text bytes.Buffer
	if err := written.Execute(&text, r.page()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}

// page is the data of the template.
type page struct {
	Lines, OldLines                          []line
	ModeLines                                []modeLine
	SplitContenders                          []string
	SplitLines                               []splitLine
	Facts                                    []fact
	Rounds, Samples, Shared, Bursts, WarmUps int
	Deployments, Namespaces, PerNamespace    int
	Bystanders, Workers, Writers, PodChanges int
	Rest                                     time.Duration
	FanOut, FanOutLimit                      int
	Large, Apart                             bool
}

func (r *report) page() page {
	return page{
		Lines: r.lines(), OldLines: r.oldLines(), ModeLines: r.modeLines(), Facts: r.facts,
		Rounds: r.settings.rounds, Samples: samplesInRound, Shared: sharedInRound, Bursts: smallBurstsInRound, WarmUps: warmUps,
		Deployments: r.cluster.deployments, Namespaces: allNamespaces, PerNamespace: r.cluster.perSpace,
		Bystanders: r.cluster.bystanders, Workers: floorWorkers, Writers: writersAtOnce, Rest: rest, PodChanges: podChanges,
		FanOut: r.settings.fanOut, FanOutLimit: fanOutLimit,
		Large: r.settings.large, Apart: isApart(), SplitContenders: splitContenders, SplitLines: r.splitLines(),
	}
}
