package inspect

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// report is an explanation before it is written, as text or as JSON.
type report struct {
	Cluster  string          `json:"cluster"`
	Workload events.Workload `json:"workload"`
	// Problems are those of its annotations, and of what could not be read.
	Problems []string `json:"problems,omitempty"`
	// Notes are sentences for people, of all that concerns the workload as a whole.
	Notes []string `json:"notes"`
	// States are those of the notes that say whether it is rolled at all, and what keeps it from being rolled now.
	States []state `json:"states,omitempty"`
	// Last is the last outcome on CHANGES, Held the last on HISTORY that says that it waits. Nil: there is none.
	Last *reportedOutcome `json:"lastOutcome,omitempty"`
	Held *hold            `json:"held,omitempty"`
	// Pending are the sources with changes that it is still to be rolled for.
	Pending []string      `json:"pending"`
	Sources []explanation `json:"sources"`

	// paragraphs are the lines of each of Notes, for texts of others may have line breaks, too.
	paragraphs [][]string
	// waits says that its rollout goes on only when somebody has it go on.
	waits bool
	// now is when it was asked. Zero leaves out how long ago anything was.
	now time.Time
}

// reportedOutcome is an outcome with those of its attributes that its data does not have.
type reportedOutcome struct {
	Verb events.Verb `json:"verb"`
	Time time.Time   `json:"time"`
	events.Outcome
}

func newReport(cluster string, id events.Workload, now time.Time) *report {
	return &report{Cluster: cluster, Workload: id, now: now, Pending: []string{}, Sources: []explanation{}}
}

// note adds a paragraph of one line.
func (r *report) note(format string, about ...any) { r.noteLines(fmt.Sprintf(format, about...)) }

// noteLines adds a paragraph of several lines.
func (r *report) noteLines(lines ...string) {
	r.Notes = append(r.Notes, strings.Join(lines, "\n"))
	r.paragraphs = append(r.paragraphs, lines)
}

// state is a note that says whether and when a workload is rolled.
type state struct {
	// Reason is that of outcomes. Empty: it is no reason of theirs.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"`
}

// noteState adds a paragraph that says whether and when the workload is rolled.
func (r *report) noteState(reason plan.Reason, format string, about ...any) {
	r.noteStateLines(reason, fmt.Sprintf(format, about...))
}

// noteStateLines is noteState for a paragraph of several lines.
func (r *report) noteStateLines(reason plan.Reason, lines ...string) {
	r.noteLines(lines...)
	r.States = append(r.States, state{reason.String(), r.Notes[len(r.Notes)-1]})
}

// past returns a time that is over, and how long ago that was.
func (r *report) past(at time.Time) string {
	text := at.UTC().Format(time.RFC3339)
	if r.now.IsZero() {
		return text
	}
	return text + " (" + duration.HumanDuration(max(r.now.Sub(at), 0)) + " ago)"
}

// coming returns a time that is to come, and how long that is from now.
func (r *report) coming(at time.Time) string {
	return at.UTC().Format(time.RFC3339) + " (in " + duration.HumanDuration(max(at.Sub(r.now), 0)) + ")"
}

func (r *report) writeText(out io.Writer, view View) error {
	fmt.Fprintf(out, "%s in namespace %s of cluster %s\n\n", r.Workload, r.Workload.Namespace, r.Cluster)
	for _, problem := range r.Problems {
		fmt.Fprintf(out, "! %s\n", events.Printable(problem))
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(out)
	}
	for i, lines := range r.paragraphs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		for _, line := range lines {
			fmt.Fprintln(out, events.Printable(line))
		}
	}
	if len(r.Sources) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	return view.WriteTable(out, func(row func(...any)) { r.addSources(row, view.isNarrow()) })
}

// addSources adds a row for each source. What has to be short has no dates, and not how the source is read.
func (r *report) addSources(row func(cells ...any), narrow bool) {
	if narrow {
		row("SOURCE", "CHANGED", "ROLLED FOR", "NOW")
		for _, e := range r.Sources {
			row(e.Source, r.age(e.Changed, e.never), r.age(e.Rolled, false), e.text())
		}
		return
	}
	row("SOURCE", "READ", "ASKED BY", "LAST CHANGE", "LAST ROLLED FOR", "NOW")
	for _, e := range r.Sources {
		row(e.Source, e.read(), e.asked(), r.change(e.Changed, e.never), r.change(e.Rolled, false), e.text())
	}
}

// age returns how long ago a change was written that is to be shown in little space.
func (r *report) age(c *changeAt, never bool) string {
	if c == nil || c.Time.IsZero() {
		return r.change(c, never)
	}
	return duration.HumanDuration(max(r.now.Sub(c.Time), 0)) + " ago"
}

// change returns when a change was written, or the resourceVersion that says so if the time is not known.
func (r *report) change(c *changeAt, never bool) string {
	switch {
	case c == nil && never:
		return "never"
	case c == nil:
		return "-"
	case c.Time.IsZero():
		return "resourceVersion " + c.ResourceVersion
	}
	return r.past(c.Time)
}
