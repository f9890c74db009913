package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// ill is a kind of incident.
type ill string

// The ills.
const (
	// lost means that pods run with outdated content, or that a change has neither a roll nor a reason for none.
	lost ill = "lost"
	// doubled means a roll without a change that no earlier roll was for.
	doubled ill = "doubled"
	// untold means a roll without an outcome in HISTORY, although HISTORY was not lost.
	untold ill = "untold"
	// broken means that a program did not recover, or that it crashed by itself.
	broken ill = "broken"
)

// always is later than every version.
const always = math.MaxInt64

// ills are all kinds of incidents, in the order of the report.
var ills = []ill{lost, doubled, untold, broken}

// incident is one case of an ill, with what is known about it.
type incident struct {
	ill      ill
	workload string
	// source is empty if the incident is not about a source.
	source string
	// version is the version of the change or of the roll, and at is when it was seen.
	version int64
	at      time.Time
	detail  string
}

// evidence is what a verdict is based on.
type evidence struct {
	journal journal
	readers []reader
	// from is the version up to which everything was preparation.
	from  int64
	told  told
	amiss []window
}

// window is a period for which HISTORY has lost outcomes.
type window struct{ from, to time.Time }

func (w window) has(at time.Time) bool { return !at.Before(w.from) && !at.After(w.to) }

// verdict returns every incident, in the order of the versions.
func (e evidence) verdict() []incident {
	found := e.outdated()
	for _, r := range e.readers {
		found = append(found, e.doubled(r)...)
		found = append(found, e.untold(r)...)
	}
	slices.SortStableFunc(found, func(a, b incident) int { return cmp.Compare(a.version, b.version) })
	return found
}

// outdated returns the changes that the workloads do not have. They are lost if nothing is still going to happen.
func (e evidence) outdated() []incident {
	var found []incident
	for _, r := range e.readers {
		found = append(found, e.lost(r)...)
	}
	return found
}

// lost compares what the pods of a workload have read, and what its record says about that, with the current content.
func (e evidence) lost(r reader) []incident {
	patches := e.journal.patches[r.name]
	if len(patches) == 0 {
		return []incident{{ill: lost, workload: r.name, detail: "the workload was never seen"}}
	}
	record := patches[len(patches)-1].record
	renewed := patches[0]
	for _, p := range patches {
		if p.renewed {
			renewed = p
		}
	}
	var found []incident
	for _, source := range slices.Sorted(maps.Keys(r.reads)) {
		keys := r.reads[source]
		now := e.journal.content(source, keys, always)
		// This is the version that the workload has according to its record or to a reason in HISTORY.
		known := max(record[source], e.told.skips[r.name][source])
		switch {
		case e.journal.content(source, keys, renewed.version) != now:
			detail := fmt.Sprintf("its pods are of version %d, which is before the change", renewed.version)
			found = append(found, e.missed(r, source, renewed.version, detail))
		case e.journal.content(source, keys, known) != now:
			detail := fmt.Sprintf("its pods are new enough, of version %d, by another roll; the record says %d and no outcome says why",
				renewed.version, record[source])
			found = append(found, e.missed(r, source, known, detail))
		}
	}
	return found
}

// missed returns the incident of losing the first change of a source since a version.
func (e evidence) missed(r reader, source string, since int64, detail string) incident {
	change := e.journal.firstUnrecorded(source, r.reads[source], since, always)
	return incident{ill: lost, workload: r.name, source: source, version: change.version, at: change.at, detail: detail}
}

// doubled finds the rolls of a workload for which no source had a change that no earlier patch recorded.
func (e evidence) doubled(r reader) []incident {
	var found []incident
	var before map[string]int64
	for _, p := range e.journal.patches[r.name] {
		if p.rolled && p.version > e.from && !e.hasReason(r, before, p) {
			found = append(found, incident{
				ill: doubled, workload: r.name, version: p.version, at: p.at,
				detail: fmt.Sprintf("roll %s records %v after %v, and there is no change between", p.revision, p.record, before),
			})
		}
		before = p.record
	}
	return found
}

func (e evidence) hasReason(r reader, before map[string]int64, p patch) bool {
	for source, keys := range r.reads {
		version := p.record[source]
		if version < p.version && len(e.journal.changes(source, keys, before[source], version)) > 0 {
			return true
		}
	}
	return false
}

// untold finds the rolls of a workload that HISTORY does not know, and never lost.
func (e evidence) untold(r reader) []incident {
	var found []incident
	for _, p := range e.journal.patches[r.name] {
		inLoss := slices.ContainsFunc(e.amiss, func(w window) bool { return w.has(p.at) })
		if p.rolled && p.version > e.from && !inLoss && !e.told.rolled(r.name, p.revision) {
			found = append(found, incident{
				ill: untold, workload: r.name, version: p.version, at: p.at, detail: "roll " + p.revision + " has no outcome in HISTORY",
			})
		}
	}
	return found
}

// count counts the incidents of an ill.
func count(incidents []incident, what ill) int {
	n := 0
	for _, i := range incidents {
		if i.ill == what {
			n++
		}
	}
	return n
}
