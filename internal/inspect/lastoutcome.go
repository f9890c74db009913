package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// noteLastOutcome adds the last outcome of a workload, and returns it. The outcome is empty if there is none, or if it cannot be read.
func (r *report) noteLastOutcome(ctx context.Context, reader *events.Reader, w *workload.Workload, traceURL string) (events.Outcome, error) {
	stored, err := reader.Last(ctx, events.OutcomeSubject(r.Cluster, w.ID))
	if errors.Is(err, events.ErrNotFound) {
		text := "It was never rolled."
		if w.Revision != "" {
			text = "It was rolled. Its outcome is no longer on the stream, which keeps it for 30 days at most."
		}
		r.note("%s", text)
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
