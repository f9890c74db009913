package plugin

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inspect"
)

// rotation is a change with all its effects.
type rotation struct {
	// id is the id of the change, and root its event, or nil if that was not read.
	id    string
	root  *fact
	facts []*fact
}

// group sorts events into rotations, by the changes that they name as their cause. An outcome of several changes is in the rotation of each.
func group(facts []fact) []*rotation {
	g := grouping{changes: make(map[string]*fact), rotations: make(map[string]*rotation)}
	for i := range facts {
		if f := &facts[i]; f.isChange() && g.changes[f.id] == nil {
			g.changes[f.id] = f
		}
	}
	g.adoptWriters(facts)
	for i := range facts {
		for _, root := range g.roots(&facts[i]) {
			if g.rotations[root] == nil {
				g.rotations[root] = &rotation{id: root, root: g.changes[root]}
			}
			r := g.rotations[root]
			r.facts = append(r.facts, &facts[i])
		}
	}
	list := slices.Collect(maps.Values(g.rotations))
	for _, r := range list {
		slices.SortStableFunc(r.facts, func(a, b *fact) int { return a.at.Compare(b.at) })
	}
	slices.SortFunc(list, func(a, b *rotation) int {
		return cmp.Or(b.start().Compare(a.start()), a.facts[0].object.compare(b.facts[0].object), cmp.Compare(a.facts[0].id, b.facts[0].id))
	})
	return list
}

type grouping struct {
	// changes contains all changes by id, and rotations the rotations by the id of their first change.
	changes   map[string]*fact
	rotations map[string]*rotation
}

// near is the maximum time between the events of an ExternalSecret or a Certificate and of the Secret that it wrote.
const near = time.Minute

// adoptWriters makes ExternalSecrets and Certificates without a cause the children of the Secret that they wrote. Only their times connect them.
func (g *grouping) adoptWriters(facts []fact) {
	writers := make(map[eventObject][]*fact)
	for i := range facts {
		if f := &facts[i]; (f.kind == events.KindExternalSecret || f.kind == events.KindCertificate) && g.known(f.causes) == "" {
			writers[f.object] = append(writers[f.object], f)
		}
	}
	for i := range facts {
		f := &facts[i]
		if f.kind != events.KindSecret || f.writer == "" || g.known(f.causes) != "" {
			continue
		}
		for _, w := range writers[eventObject{f.object.cluster, f.object.namespace, f.writer}] {
			if w.at.Sub(f.at).Abs() <= near && g.known(w.causes) == "" {
				w.causes = []string{f.id}
			}
		}
	}
}

// known returns the first of the ids whose change was read, or "" if none was.
func (g *grouping) known(ids []string) string {
	for _, id := range ids {
		if g.changes[id] != nil {
			return id
		}
	}
	return ""
}

// maxDepth is the maximum number of links from the first write to a Secret. More would be a cycle, which only a forged event can cause.
const maxDepth = 8

// root returns the id of the first change that led to a change. Its event may not have been read.
func (g *grouping) root(id string) string {
	for range maxDepth {
		change := g.changes[id]
		if change == nil || len(change.causes) == 0 {
			break
		}
		id = change.causes[0]
	}
	return id
}

// roots returns the ids of the rotations that an event belongs to.
func (g *grouping) roots(f *fact) []string {
	if f.isChange() {
		return []string{g.root(f.id)}
	}
	var roots []string
	for _, id := range f.causes {
		if root := g.root(id); !slices.Contains(roots, root) && (g.changes[id] != nil || len(f.causes) == 1 || g.rotations[root] != nil) {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 && len(f.causes) > 0 {
		roots = f.causes[:1]
	}
	return roots
}

// start returns when the change was written, or the time of the first event if that is unknown.
func (r *rotation) start() time.Time {
	if r.root != nil && !r.root.written.IsZero() && r.root.written.Before(r.root.at) {
		return r.root.written
	}
	return r.facts[0].at
}

// matches reports whether the rotation has a matching event for each option that is set.
func (r *rotation) matches(o *inspect.HistoryOptions) bool {
	// A secret in a store has no namespace, and counts if a source is requested.
	isWithin := func(f *fact) bool {
		return o.Namespace == "" || f.object.namespace == o.Namespace || f.kind == events.KindOpenBao && o.Source != ""
	}
	for _, matches := range []func(*fact) bool{
		func(f *fact) bool {
			return isWithin(f) && (o.Source == "" || f.isChange() && f.object.name == o.Source)
		},
		func(f *fact) bool {
			return isWithin(f) && (o.Workload == "" || !f.isChange() && f.object.name == o.Workload)
		},
		func(f *fact) bool { return len(o.Verbs) == 0 || slices.Contains(o.Verbs, string(f.verb)) },
		func(f *fact) bool { return o.Trace == "" || f.trace.ID() == o.Trace },
	} {
		if !slices.ContainsFunc(r.facts, matches) {
			return false
		}
	}
	return true
}

// uneventful reports whether the change had no effect, not even a failure.
func (r *rotation) uneventful() bool {
	return !slices.ContainsFunc(r.facts, func(f *fact) bool { return !f.isChange() || f.verb == events.VerbFailed })
}

// rows returns a row for each object, with its state at the given time. Latest contains the last event of each workload.
func (r *rotation) rows(now time.Time, latest map[eventObject]*fact) []*row {
	of, at := make(map[eventObject][]*fact), make(map[string]time.Time)
	for _, f := range r.facts {
		of[f.object] = append(of[f.object], f)
		if f.isChange() {
			at[f.id] = f.at
		}
	}
	rows := make([]*row, 0, len(of))
	for about, facts := range of {
		var known time.Time
		for _, id := range facts[0].causes {
			if seen := at[id]; !seen.IsZero() && (known.IsZero() || seen.Before(known)) {
				known = seen
			}
		}
		row := newRow(facts, r.start(), known)
		later := latest[about]
		if later != nil && (slices.Contains(facts, later) || !later.at.After(facts[len(facts)-1].at)) {
			later = nil
		}
		row.end(now, later)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, r.compare)
	return rows
}

// compare orders rows by cluster, beginning with that of the change. Within a cluster, the chain of sources from the write comes first, in its order,
// and then the workloads, the most urgent first.
func (r *rotation) compare(a, b *row) int {
	first := r.facts[0].object.cluster
	if r.root != nil {
		first = r.root.object.cluster
	}
	order := cmp.Or(cmp.Compare(trueFirst[a.object.cluster == first], trueFirst[b.object.cluster == first]),
		cmp.Compare(a.object.cluster, b.object.cluster), cmp.Compare(trueFirst[a.source], trueFirst[b.source]))
	if order == 0 && a.source {
		order = a.first.Compare(b.first)
	}
	if order == 0 && !a.source {
		order = cmp.Compare(b.state, a.state)
	}
	return cmp.Or(order, a.object.compare(b.object))
}

var trueFirst = map[bool]int{true: 0, false: 1}
