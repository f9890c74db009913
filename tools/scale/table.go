package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// column is a column of the tables.
type column struct {
	title string
	// ofOwn says that the column is only for clusters with their own streams.
	ofOwn bool
	cell  func(*row) string
}

var columns = []column{
	{title: "clusters", cell: func(r *row) string { return fmt.Sprint(r.clusters) }},
	{title: "sources", cell: func(r *row) string { return thousands(r.sources) }},
	{title: "declared", ofOwn: true, cell: func(r *row) string { return short(r.declared) }},
	{title: "events/s, first", cell: func(r *row) string { return thousands(int(r.fill)) }},
	{title: "events/s, sustained", cell: func(r *row) string { return thousands(int(r.sustained)) }},
	{title: "median", cell: func(r *row) string { return short(r.median) }},
	{title: "p99", cell: func(r *row) string { return short(r.late) }},
	{title: "FLEET", ofOwn: true, cell: func(r *row) string {
		return fmt.Sprintf("%s, %.1f %%", short(r.behind), 100*float64(r.stored)/float64(r.events))
	}},
	{title: "cores", cell: func(r *row) string { return fmt.Sprintf("%.2f", r.cores) }},
	{title: "memory", cell: func(r *row) string { return mebibytes(float64(r.usage.memory)) }},
	{title: "disk", cell: func(r *row) string { return mebibytes(float64(r.usage.disk)) }},
	{title: "catch-up", cell: func(r *row) string {
		return fmt.Sprintf("%s for %s of %d", r.catchUp.Round(100*time.Millisecond), thousands(r.missed), r.away)
	}},
	{title: "retries", cell: func(r *row) string { return thousands(int(r.retried)) }},
}

// columnsOf returns the columns of the table of a layout.
func columnsOf(shared bool) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.ofOwn && shared })
}

// lines returns the lines of a table, beginning with the titles.
func (r *result) lines() [][]string {
	columns := columnsOf(r.shared)
	titles := make([]string, len(columns))
	for i, column := range columns {
		titles[i] = column.title
	}
	lines := [][]string{titles}
	for at := range r.rows {
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = column.cell(&r.rows[at])
		}
		lines = append(lines, cells)
	}
	return lines
}

// table returns the table for the terminal.
func (r *result) table() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, cells := range r.lines() {
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err.Error()
	}
	return out.String()
}

// markdown returns the table for the page.
func (r *result) markdown() string {
	var out strings.Builder
	for i, cells := range r.lines() {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat(" ---: |", len(cells)))
		}
	}
	return out.String()
}

// short formats a duration, rounded to milliseconds.
func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

func mebibytes(n float64) string { return thousands(int(n/(1<<20))) + " MiB" }

// thousands formats a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
