package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// page is the content of a page. Its tables describe the lanes in words, for screen readers and for paper.
type page struct {
	// clusters names the clusters of the rotations.
	clusters string
	// urgent are rows that may need an action.
	urgent   []*row
	sections []*section
	// others are the changes that rolled nothing.
	others []*fact
	// left are sentences about omissions of the page.
	left []string
}

// section is the part of a page about a rotation.
type section struct {
	id string
	// object is the changed source, and about has details of the change.
	object, where, word, about string
	trace, traceLink           string
	// worst is the most urgent state of the rows.
	worst        state
	counts, took string
	rows         []*row
	scale        scale
}

func newPage(t *timeline) *page {
	t.drop()
	p := &page{}
	if t.dropped > 0 {
		p.left = append(p.left, fmt.Sprintf("%d older events; choose a later start to read fewer.", t.dropped))
	}
	latest := make(map[eventObject]*fact)
	for i := range t.facts {
		f := &t.facts[i]
		if last := latest[f.object]; laterWords[f.verb] != "" && !f.isChange() && (last == nil || !f.at.Before(last.at)) {
			latest[f.object] = f
		}
	}
	clusters := make(map[string]bool)
	var rotations, others int
	for _, r := range group(t.facts) {
		switch {
		case !r.matches(&t.options) || r.uneventful() && r.facts[0].verb == events.VerbObserved:
		case r.uneventful():
			if others++; others <= maxOthers {
				p.others = append(p.others, r.facts[0])
			}
		default:
			if rotations++; rotations <= maxRotations {
				p.addRotation(r, r.rows(t.now, latest), t, clusters)
			}
		}
	}
	if rotations > maxRotations {
		p.left = append(p.left, fmt.Sprintf("%d earlier rotations; choose a source, a workload or a later start.", rotations-maxRotations))
	}
	if others > maxOthers {
		p.left = append(p.left, fmt.Sprintf("%d earlier changes that rolled nothing.", others-maxOthers))
	}
	p.clusters = strings.Join(slices.Sorted(maps.Keys(clusters)), ", ")
	return p
}

func (p *page) addRotation(r *rotation, rows []*row, t *timeline, clusters map[string]bool) {
	v := &section{id: fmt.Sprintf("r%d", len(p.sections)+1), worst: skipped}
	v.name(r, t.options.TraceURL)
	last := r.start()
	counts := make(map[string]int)
	for _, row := range rows {
		v.worst = max(v.worst, row.settled())
		if row.last.After(last) {
			last = row.last
		}
		if !row.source {
			counts[strings.ToLower(row.word)]++
		}
		clusters[row.object.cluster] = true
	}
	v.counts = countsOf(counts)
	v.took = span(last.Sub(r.start())) + " from the write to the last event"
	if last.Equal(t.now) {
		v.took = "for " + span(last.Sub(r.start())) + " so far"
	}
	if left := len(rows) - maxRows; left > 0 {
		p.left = append(p.left, fmt.Sprintf("%d objects of the rotation of %s.", left, v.object))
		rows = rows[:maxRows]
	}
	for i, row := range rows {
		row.id = fmt.Sprintf("%s-%d", v.id, i+1)
		if row.urgent() {
			p.urgent = append(p.urgent, row)
		}
	}
	v.rows, v.scale = rows, newScale(r.start(), last)
	p.sections = append(p.sections, v)
}

func (v *section) name(r *rotation, traceURL string) {
	f := r.root
	if f == nil {
		f = r.facts[0]
		v.object, v.where, v.word = f.object.name, f.object.where(), "after a change that is not among the events of this page"
		if i := slices.IndexFunc(r.facts, func(f *fact) bool { return len(f.sources) == 1 && slices.Contains(f.causes, r.id) }); i >= 0 {
			v.object, v.word = r.facts[i].sources[0], "changed, by an event that is not on this page"
		}
	} else {
		v.object, v.where, v.word, v.about = f.object.name, f.object.where(), strings.ToLower(changeWords[f.verb]), f.about
	}
	v.trace = f.trace.ID()
	if events.ValidateTraceURL(traceURL) == nil { // A link with a script is not a valid URL.
		v.traceLink = f.trace.Link(traceURL)
	}
}

// wordOrder is the order in which the states of workloads are counted, the most urgent first.
var wordOrder = []string{"failed", "waits", "rolling", "ready", "reloaded in place", "applied", "superseded", "not rolled"}

func countsOf(counts map[string]int) string {
	var parts []string
	for _, word := range wordOrder {
		if counts[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[word], word))
		}
	}
	return strings.Join(parts, ", ")
}

// overall describes a rotation by its most urgent state.
var overall = map[state]string{skipped: "Nothing rolled", ready: "All ready", running: "Rolling", waiting: "Waits", failed: "Failed"}

func stamp(at time.Time) string { return at.UTC().Format(time.DateTime) + " UTC" }

func (o eventObject) where() string {
	if o.namespace == "" {
		return "cluster " + o.cluster
	}
	return o.within() + ", cluster " + o.cluster
}

func (o eventObject) within() string {
	if o.namespace == "" {
		return ""
	}
	return "namespace " + o.namespace
}
