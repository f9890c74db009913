package main

import "time"

// gap is how long a workload was outdated: from the first change that a patch is for until the patch.
type gap struct{ from, to time.Time }

// gaps returns the gaps of all patches after the preparation that record a change.
func (e evidence) gaps() []gap {
	var found []gap
	for _, r := range e.readers {
		var before map[string]int64
		for _, p := range e.journal.patches[r.name] {
			for source, keys := range r.reads {
				first := e.journal.firstUnrecorded(source, keys, before[source], p.record[source])
				if p.version > e.from && first.version > e.from {
					found = append(found, gap{from: first.at, to: p.at})
				}
			}
			before = p.record
		}
	}
	return found
}

// blame says which faults may have caused a gap or an incident.
type blame struct {
	// kinds are the kinds of the faults that were active, or had ended less than recovery before. There are none if there was
	// no fault.
	kinds []kind
	// since is when the last of them ended, if that is after the gap began.
	since time.Time
}

// recovery is how long after a fault something is still attributed to it: both programs retry after up to a minute.
const recovery = time.Minute

// blamed returns the faults that may have caused something between two times.
func blamed(faults []inflicted, from, to time.Time) blame {
	b := blame{since: from}
	for _, f := range faults {
		if f.from.After(to) || f.to.Add(recovery).Before(from) {
			continue
		}
		b.kinds = append(b.kinds, f.kind)
		if f.to.After(b.since) && !f.to.After(to) {
			b.since = f.to
		}
	}
	return b
}
