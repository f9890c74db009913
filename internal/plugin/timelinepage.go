package plugin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

//go:embed timeline.html
var pageHTML string

//go:embed timeline.css
var pageCSS string

// page is the content of a page, for timeline.html. The page has no script, and its Content-Security-Policy permits nothing but its own style
// sheet. Its table says in words what the lanes show, for screen readers and for paper. Events are not trusted: html/template escapes their texts.
type page struct {
	Style     template.CSS
	StyleHash string
	// Made is when the page was made, and Clusters names the clusters of the rotations.
	Made      string
	Clusters  string
	Urgent    []urgentView
	Rotations []rotationView
	Others    []otherView
	// Left are sentences about what the page leaves out.
	Left []string
}

// urgentView points to a row that someone may have to do something about.
type urgentView struct{ Tone, State, Object, Where, Why, Row string }

type otherView struct{ At, Object, Where, Word, About string }

type rotationView struct {
	ID, Tone, State, Object, Where, Word, About, At, Took, Counts string
	Trace, TraceLink                                              string
	Ticks                                                         []tickView
	Groups                                                        []groupView
}

type tickView struct{ X, Anchor, Text string }

// groupView has the rows of a cluster. Title is empty if there is only one cluster.
type groupView struct {
	Title string
	Rows  []rowView
}

type rowView struct {
	ID, Tone, State, Object, Where, Why, Since string
	Bars                                       []barView
	Steps                                      []stepView
}

type (
	barView  struct{ X, Width, Y, Height, Tone string }
	stepView struct{ X, Tone, After, Text string }
)

func (t *timeline) write(out io.Writer) error {
	parsed, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("parsing the page: %w", err)
	}
	if err := parsed.Execute(out, newPage(t)); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func newPage(t *timeline) *page {
	t.drop()
	sum := sha256.Sum256([]byte(pageCSS))
	p := &page{Made: stamp(t.now), Style: template.CSS(pageCSS), StyleHash: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
	if t.dropped > 0 {
		p.Left = append(p.Left, fmt.Sprintf("%d older events; choose a later start to read fewer.", t.dropped))
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
				f := r.facts[0]
				p.Others = append(p.Others, otherView{stamp(f.at), f.object.name, f.object.where(), changeWords[f.verb], join(f.reason, f.about)})
			}
		default:
			if rotations++; rotations <= maxRotations {
				p.addRotation(r, r.rows(t.now, latest), t, clusters)
			}
		}
	}
	if rotations > maxRotations {
		p.Left = append(p.Left, fmt.Sprintf("%d earlier rotations; choose a source, a workload or a later start.", rotations-maxRotations))
	}
	if others > maxOthers {
		p.Left = append(p.Left, fmt.Sprintf("%d earlier changes that rolled nothing.", others-maxOthers))
	}
	p.Clusters = strings.Join(slices.Sorted(maps.Keys(clusters)), ", ")
	return p
}

func (p *page) addRotation(r *rotation, rows []*row, t *timeline, clusters map[string]bool) {
	v := rotationView{ID: fmt.Sprintf("r%d", len(p.Rotations)+1), At: stamp(r.start())}
	v.name(r, t.options.TraceURL)
	worst, last := skipped, r.start()
	counts := make(map[string]int)
	for _, row := range rows {
		worst = max(worst, row.settled())
		if row.last.After(last) {
			last = row.last
		}
		if !row.source {
			counts[strings.ToLower(row.word)]++
		}
		clusters[row.object.cluster] = true
	}
	v.Tone, v.State, v.Counts = worst.String(), overall[worst], countsOf(counts)
	v.Took = span(last.Sub(r.start())) + " from the write to the last event"
	if last.Equal(t.now) {
		v.Took = "for " + span(last.Sub(r.start())) + " so far"
	}
	if left := len(rows) - maxRows; left > 0 {
		p.Left = append(p.Left, fmt.Sprintf("%d objects of the rotation of %s.", left, v.Object))
		rows = rows[:maxRows]
	}
	several := rows[0].object.cluster != rows[len(rows)-1].object.cluster
	s := newScale(r.start(), last)
	v.axis(&s)
	for i, row := range rows {
		view := newRowView(row, &s, fmt.Sprintf("%s-%d", v.ID, i+1))
		if row.urgent() {
			p.Urgent = append(p.Urgent, urgentView{view.Tone, view.State, view.Object, row.object.where(), view.Why, view.ID})
		}
		if i == 0 || rows[i-1].object.cluster != row.object.cluster {
			v.Groups = append(v.Groups, groupView{})
			if several {
				v.Groups[len(v.Groups)-1].Title = row.object.cluster
			}
		}
		of := &v.Groups[len(v.Groups)-1]
		of.Rows = append(of.Rows, view)
	}
	p.Rotations = append(p.Rotations, v)
}

func (v *rotationView) name(r *rotation, traceURL string) {
	f := r.root
	if f == nil {
		f = r.facts[0]
		v.Object, v.Where, v.Word = f.object.name, f.object.where(), "after a change that is not among the events of this page"
		if i := slices.IndexFunc(r.facts, func(f *fact) bool { return len(f.sources) == 1 && slices.Contains(f.causes, r.id) }); i >= 0 {
			v.Object, v.Word = r.facts[i].sources[0], "changed, by an event that is not on this page"
		}
	} else {
		v.Object, v.Where, v.Word, v.About = f.object.name, f.object.where(), strings.ToLower(changeWords[f.verb]), f.about
	}
	v.Trace, v.TraceLink = f.trace.ID(), f.trace.Link(traceURL)
}

func (v *rotationView) axis(s *scale) {
	for _, d := range s.ticks() {
		v.Ticks = append(v.Ticks, tickView{percent(s.position(s.start.Add(d))), "middle", since(d)})
	}
	v.Ticks[0].Anchor, v.Ticks[len(v.Ticks)-1].Anchor = "start", "end"
}

func newRowView(r *row, s *scale, id string) rowView {
	v := rowView{
		ID: id, Tone: r.state.String(), Object: r.object.name, Where: r.object.within(), State: r.word, Why: r.why, Since: r.since,
	}
	for _, b := range r.bars {
		from, to := s.position(b.from), s.position(b.to)
		y, height := "9", "12"
		if b.tone == seen.String() || b.tone == pending {
			y, height = "13", "4"
		}
		v.Bars = append(v.Bars, barView{percent(from), percent(max(to-from, 0.2)), y, height, b.tone})
	}
	for _, step := range r.steps {
		v.Steps = append(v.Steps, stepView{percent(s.position(step.at)), step.tone, since(step.at.Sub(s.start)), step.text})
	}
	return v
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

func percent(at float64) string { return fmt.Sprintf("%.2f%%", at) }

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
