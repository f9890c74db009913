package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

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

// note adds a paragraph.
func (r *report) note(format string, about ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, about...))
}

// state is a note that says whether and when a workload is rolled.
type state struct {
	// Reason is that of outcomes. Empty: it is no reason of theirs.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"`
}

// noteState adds a paragraph that says whether and when the workload is rolled.
func (r *report) noteState(reason plan.Reason, format string, about ...any) {
	r.note(format, about...)
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

func (r *report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("encoding the explanation: %w", err)
	}
	return nil
}

func (r *report) writeYAML(out io.Writer) error {
	content, err := yaml.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the explanation: %w", err)
	}
	_, err = out.Write(content)
	return err
}

func (r *report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%s in namespace %s of cluster %s\n\n", r.Workload, r.Workload.Namespace, r.Cluster)
	for _, problem := range r.Problems {
		fmt.Fprintf(out, "! %s\n", problem)
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(out)
	}
	for i, note := range r.Notes {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, note)
	}
	if len(r.Sources) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nSOURCE\tREAD\tASKED BY\tLAST CHANGE\tLAST ROLLED FOR\tNOW")
	for _, row := range r.Sources {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Source, row.read(), row.asked(),
			r.change(row.Changed, row.never), r.change(row.Rolled, false), row.text())
	}
	return table.Flush()
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
