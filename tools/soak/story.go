package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// around is how long before and after an incident its story extends.
const around = 2 * time.Minute

// line is one thing that happened.
type line struct {
	at   time.Time
	text string
}

// story returns what happened around an incident, in order: writes of the sources that the workload reads, its patches, and the
// faults.
func (r *report) story(i incident) []string {
	var lines []line
	for _, f := range r.faults {
		lines = append(lines, line{f.from, string(f.kind) + " begins"}, line{f.to, fmt.Sprintf("%s is over: %s", f.kind, f.what)})
	}
	for _, reader := range r.evidence.readers {
		if reader.name == i.workload {
			lines = append(lines, r.evidence.journal.lines(reader)...)
		}
	}
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.at.Before(i.at.Add(-around)) || l.at.After(i.at.Add(around)) })
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.text, b.text)) })
	texts := make([]string, 0, len(lines))
	for _, l := range lines {
		texts = append(texts, l.at.Format("15:04:05.000")+"  "+l.text)
	}
	return texts
}

// lines returns the writes and the patches of a workload, without the content of sources.
func (j journal) lines(r reader) []line {
	var lines []line
	for source, keys := range r.reads {
		before := ""
		for _, w := range j.writes[source] {
			what := "changes nothing that is read"
			if now := w.read(keys); now != before {
				what, before = "changes what is read", now
			}
			lines = append(lines, line{w.at, fmt.Sprintf("%s@%d %s", source, w.version, what)})
		}
	}
	for _, p := range j.patches[r.name] {
		what := "is recorded"
		switch {
		case p.rolled:
			what = "is rolled to " + p.revision
		case p.renewed:
			what = "has another pod template"
		}
		var record []string
		for _, source := range slices.Sorted(maps.Keys(p.record)) {
			record = append(record, fmt.Sprintf("%s@%d", source, p.record[source]))
		}
		lines = append(lines, line{p.at, fmt.Sprintf("%s@%d %s; its record is %s", r.name, p.version, what, strings.Join(record, ", "))})
	}
	return lines
}
