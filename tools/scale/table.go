package main

import (
	"fmt"
	"strings"
	"time"
)

// column is a column of the table.
type column struct {
	title string
	cell  func(*row) string
}

var columns = []column{
	{title: "clusters", cell: func(r *row) string { return fmt.Sprint(r.clusters) }},
	{title: "sources", cell: func(r *row) string { return thousands(r.sources) }},
	{title: "declared", cell: func(r *row) string { return short(r.declared) }},
	{title: "events/s, first", cell: func(r *row) string { return thousands(int(r.fill)) }},
	{title: "events/s, sustained", cell: func(r *row) string { return thousands(int(r.sustained)) }},
	{title: "median", cell: func(r *row) string { return short(r.median) }},
	{title: "p99", cell: func(r *row) string { return short(r.late) }},
	{title: "FLEET", cell: func(r *row) string {
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

// table returns the table, as Markdown.
func (r *report) table() string {
	var out strings.Builder
	line := func(cell func(column) string) {
		out.WriteString("|")
		for _, c := range columns {
			fmt.Fprintf(&out, " %s |", cell(c))
		}
		out.WriteString("\n")
	}
	line(func(c column) string { return c.title })
	fmt.Fprintf(&out, "|%s\n", strings.Repeat(" ---: |", len(columns)))
	for i := range r.rows {
		line(func(c column) string { return c.cell(&r.rows[i]) })
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
