package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"slices"
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
	return slices.ContainsFunc(r.lines(), func(l line) bool { return l.verdict == missed }) ||
		slices.ContainsFunc(r.modeLines(), func(l modeLine) bool { return l.verdict == missed })
}

// print writes the report for a terminal.
func (r *report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASUREMENT\tFLOOR\tKEYTURN\tRATIO\tTARGET\t")
	for _, l := range r.lines() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", l.what, l.floor, l.keyturn, l.ratio, l.target, l.verdict)
	}
	if lines := r.modeLines(); len(lines) > 0 {
		fmt.Fprintln(table, "\nRATIO\tKEYTURN\tMODE\tMODE\tCOMMAND\tCOMMAND\tTARGET\t")
		fmt.Fprintln(table, "\t/FLOOR\t/FLOOR\t/KEYTURN\t/FLOOR\t/KEYTURN\t\t")
		for _, l := range lines {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				l.what, l.keyturn, l.mode, l.modeToKeyturn, l.command, l.commandToKeyturn, l.target, l.verdict)
		}
	}
	fmt.Fprintln(table)
	for _, f := range r.facts {
		fmt.Fprintf(table, "%s\t%s\n", f.name, f.value)
	}
	// Ignore an error: it means that the terminal is gone.
	_ = table.Flush()
	if r.settings.scale != 1 {
		fmt.Fprintf(w, "\nAt scale %g: the targets are those of scale 1.\n", r.settings.scale)
	}
}

//go:embed benchmarks.md.tmpl
var markdown string

// writeFile writes the report as Markdown, with the method and the results.
func (r *report) writeFile(path string) error {
	page, err := template.New("benchmarks.md").Parse(markdown)
	if err != nil {
		return fmt.Errorf("reading the template of the report: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := page.Execute(file, r.page()); err != nil {
		file.Close()
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// page is the data of the template.
type page struct {
	Lines                                    []pageLine
	ModeLines                                []pageModeLine
	Facts                                    []pageFact
	Rounds, Samples, Shared, Bursts, WarmUps int
	Deployments, Namespaces, PerNamespace    int
	Bystanders, Workers, Writers             int
	Rest, Idle                               time.Duration
	FanOut, FanOutLimit, FanOutWaves         int
	Large                                    bool
}

type pageLine struct{ What, Floor, Keyturn, Ratio, Target, Verdict string }

type pageModeLine struct{ What, Keyturn, Mode, ModeToKeyturn, Command, CommandToKeyturn, Target, Verdict string }

type pageFact struct{ Name, Value string }

func (r *report) page() page {
	p := page{
		Rounds: r.settings.rounds, Samples: samplesInRound, Shared: sharedInRound, Bursts: smallBurstsInRound, WarmUps: warmUps,
		Deployments: r.cluster.deployments, Namespaces: allNamespaces, PerNamespace: r.cluster.perSpace,
		Bystanders: r.cluster.bystanders, Workers: floorWorkers, Writers: writersAtOnce,
		Rest: rest, Idle: idleTime,
		FanOut: r.settings.fanOut, FanOutLimit: fanOutLimit, FanOutWaves: fanOutWaves,
		Large: r.settings.large,
	}
	for _, l := range r.lines() {
		p.Lines = append(p.Lines, pageLine{l.what, l.floor, l.keyturn, l.ratio, l.target, l.verdict})
	}
	for _, l := range r.modeLines() {
		p.ModeLines = append(p.ModeLines, pageModeLine{
			l.what, l.keyturn, l.mode, l.modeToKeyturn, l.command, l.commandToKeyturn, l.target, l.verdict,
		})
	}
	for _, f := range r.facts {
		p.Facts = append(p.Facts, pageFact{f.name, f.value})
	}
	return p
}
