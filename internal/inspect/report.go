package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// Report is an explanation.
type Report struct {
	Cluster  string          `json:"cluster"`
	Workload events.Workload `json:"workload"`
	// Problems are errors about invalid annotations and failed reads.
	Problems []string `json:"problems,omitempty"`
	// Notes are sentences for users about the workload as a whole.
	Notes []string `json:"notes"`
	// States are the notes that say whether the workload is rolled at all, and what prevents a roll now.
	States []state `json:"states,omitempty"`
	// Last is the last outcome on CHANGES, and Held the last one on HISTORY about a wait. They are nil if there is none.
	Last *reportedOutcome `json:"lastOutcome,omitempty"`
	Held *hold            `json:"held,omitempty"`
	// Pending are the sources with changes that the workload is still to be rolled for.
	Pending []string      `json:"pending"`
	Sources []explanation `json:"sources"`

	// paragraphs contains the lines of each of Notes, separately because untrusted texts may contain line breaks.
	paragraphs [][]string
	// waits says that the rollout waits until someone continues it.
	waits bool
	// now is the time of the report.
	now time.Time
}

// reportedOutcome is an outcome with those attributes of its event that are not part of the data.
type reportedOutcome struct {
	Verb events.Verb `json:"verb"`
	Time time.Time   `json:"time"`
	events.Outcome
}

func (r *Report) note(format string, about ...any) { r.noteLines(fmt.Sprintf(format, about...)) }

// noteLines adds a paragraph of several lines.
func (r *Report) noteLines(lines ...string) {
	r.Notes = append(r.Notes, strings.Join(lines, "\n"))
	r.paragraphs = append(r.paragraphs, lines)
}

type state struct {
	// Reason is the reason as in outcomes, or empty if outcomes have no such reason.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"`
}

// noteState adds a paragraph about whether and when the workload is rolled.
func (r *Report) noteState(reason plan.Reason, lines ...string) {
	r.noteLines(lines...)
	r.States = append(r.States, state{reason.String(), r.Notes[len(r.Notes)-1]})
}

func (r *Report) past(at time.Time) string {
	return at.UTC().Format(time.RFC3339) + " (" + duration.HumanDuration(max(r.now.Sub(at), 0)) + " ago)"
}

func (r *Report) coming(at time.Time) string {
	return at.UTC().Format(time.RFC3339) + " (in " + duration.HumanDuration(max(at.Sub(r.now), 0)) + ")"
}

// Write writes the report.
func (r *Report) Write(out io.Writer, format Format) error {
	if done, err := format.Encode(out, r); done {
		return err
	}
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
	// Narrow rows have ages instead of dates, and do not say how the source is read.
	narrow := format == Table
	rows := [][]any{{"SOURCE", "READ", "ASKED BY", "LAST CHANGE", "LAST ROLLED FOR", "NOW"}}
	if narrow {
		rows = [][]any{{"SOURCE", "CHANGED", "ROLLED FOR", "NOW"}}
	}
	for _, e := range r.Sources {
		changed, rolled := r.when(e.Changed, narrow), r.when(e.Rolled, narrow)
		if e.never {
			changed = "never"
		}
		if narrow {
			rows = append(rows, []any{e.Source, changed, rolled, e.text()})
		} else {
			rows = append(rows, []any{e.Source, e.read(), cmp.Or(e.Asked, "-"), changed, rolled, e.text()})
		}
	}
	return format.WriteTable(out, rows)
}

// when returns the time of a change's write, or its resourceVersion if the time is unknown. Narrow text has only the age.
func (r *Report) when(c *changeAt, narrow bool) string {
	switch {
	case c == nil:
		return "-"
	case c.Time.IsZero():
		return "resourceVersion " + c.ResourceVersion
	case narrow:
		return duration.HumanDuration(max(r.now.Sub(c.Time), 0)) + " ago"
	}
	return r.past(c.Time)
}

// noteLastOutcome adds the last outcome of a workload, and returns it. The outcome is empty if there is none or it is unreadable.
func (r *Report) noteLastOutcome(ctx context.Context, reader *bus.Reader, w *workload.Workload, traceURL string) (events.Outcome, error) {
	stored, err := reader.Last(ctx, events.OutcomeSubject(r.Cluster, w.ID))
	if errors.Is(err, events.ErrNotFound) {
		text := "It was never rolled."
		if w.Revision != "" {
			text = "It was rolled. Its outcome is no longer on the stream, which keeps it for 30 days at most."
		}
		r.noteLines(text)
		return events.Outcome{}, nil
	}
	if err != nil {
		return events.Outcome{}, fmt.Errorf("reading the last outcome: %w", err)
	}
	outcome, err := stored.Outcome()
	if err != nil {
		r.note("Its last outcome cannot be read: %v", err)
		return events.Outcome{}, nil
	}
	r.Last = &reportedOutcome{outcome.Verb, outcome.Time, outcome}
	causes, about := strings.Join(sourcesOf(outcome), ", "), ""
	if outcome.Verb == events.VerbFailed && outcome.Message != "" {
		about = ": " + outcome.Message
	}
	text := fmt.Sprintf("It was last rolled at %s for %s: %s (%s)%s", r.past(outcome.StartedAt), causes, outcome.Verb, outcome.Reason, about)
	if outcome.StartedAt.IsZero() {
		text = fmt.Sprintf("It was to be rolled for %s: %s at %s (%s)%s", causes, outcome.Verb, r.past(outcome.Time), outcome.Reason, about)
	}
	lines := []string{text}
	if link := traceLink(outcome.Trace, traceURL); link != "" {
		lines = append(lines, "Trace: "+link)
	}
	r.noteLines(lines...)
	return outcome, nil
}
