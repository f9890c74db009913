package main

import (
	"slices"
	"time"
)

// calm is the row of what no fault may have caused.
const calm kind = "none"

// row is what happened around one kind of fault.
type row struct {
	kind           kind
	times          int
	changes, rolls int
	longest        time.Duration
	wrong          map[ill]int
	slowest        time.Duration
}

// table has a row for each kind of fault, and a last one for the time without faults.
type table []row

// table returns the counts of what happened. Something that several faults may have caused counts for each of them.
func (r *report) table() table {
	var t table
	for _, k := range append(slices.Clone(r.settings.kinds), calm) {
		t = append(t, row{kind: k, wrong: make(map[ill]int)})
	}
	for _, f := range r.faults {
		t.each([]kind{f.kind}, func(row *row) {
			row.times++
			row.longest = max(row.longest, f.to.Sub(f.from))
		})
	}
	r.countWrites(t)
	r.countRolls(t)
	for _, i := range r.incidents {
		t.each(i.blamed(r.faults), func(row *row) { row.wrong[i.ill]++ })
	}
	for _, g := range r.evidence.gaps() {
		b := blamed(r.faults, g.from, g.to)
		t.each(b.kinds, func(row *row) { row.slowest = max(row.slowest, g.to.Sub(b.since)) })
	}
	return t
}

// each calls note for the rows of the kinds, or for the last row if there are none.
func (t table) each(kinds []kind, note func(*row)) {
	if len(kinds) == 0 {
		kinds = []kind{calm}
	}
	for i := range t {
		if slices.Contains(kinds, t[i].kind) {
			note(&t[i])
		}
	}
}

func (r *report) countWrites(t table) {
	for _, writes := range r.evidence.journal.writes {
		for _, w := range writes {
			if w.version > r.evidence.from {
				t.each(blamed(r.faults, w.at, w.at).kinds, func(row *row) { row.changes++ })
			}
		}
	}
}

func (r *report) countRolls(t table) {
	for _, patches := range r.evidence.journal.patches {
		for _, p := range patches {
			if p.rolled && p.version > r.evidence.from {
				t.each(blamed(r.faults, p.at, p.at).kinds, func(row *row) { row.rolls++ })
			}
		}
	}
}

// blamed returns the faults that an incident may come from. A change may have been lost by a fault that came after it.
func (i incident) blamed(faults []inflicted) []kind {
	to := i.at
	if i.ill == lost {
		to = to.Add(recovery)
	}
	return blamed(faults, i.at, to).kinds
}
