package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// writeLastOutcome writes the last outcome for a workload, and returns it. It is empty if there is none that can be read.
func writeLastOutcome(
	ctx context.Context, reader *events.Reader, cluster string, w *workload.Workload, traceURL string, out io.Writer,
) (events.Outcome, error) {
	stored, err := reader.Last(ctx, events.OutcomeSubject(cluster, w.ID))
	if errors.Is(err, events.ErrNotFound) {
		text := "It was never rolled."
		if w.Revision != "" {
			text = "It was rolled. Its outcome is no longer on the stream, which keeps it for 30 days."
		}
		fmt.Fprint(out, text, "\n\n")
		return events.Outcome{}, nil
	}
	if err != nil {
		return events.Outcome{}, fmt.Errorf("reading the last outcome: %w", err)
	}
	outcome, err := stored.Outcome()
	if err != nil {
		fmt.Fprintf(out, "Its last outcome cannot be read: %v\n\n", err)
		return events.Outcome{}, nil
	}
	causes := make([]string, 0, len(outcome.Sources))
	for _, source := range outcome.Sources {
		causes = append(causes, source.Source)
	}
	about := ""
	if outcome.Verb == events.VerbFailed && outcome.Message != "" {
		about = ": " + outcome.Message
	}
	if outcome.StartedAt.IsZero() {
		fmt.Fprintf(out, "It was to be rolled for %s: %s at %s (%s)%s\n", strings.Join(causes, ", "), outcome.Verb,
			outcome.Time.Format(time.RFC3339), outcome.Reason, about)
	} else {
		fmt.Fprintf(out, "It was last rolled at %s for %s: %s (%s)%s\n", outcome.StartedAt.Format(time.RFC3339),
			strings.Join(causes, ", "), outcome.Verb, outcome.Reason, about)
	}
	if link := traceLink(outcome.Trace, traceURL); link != "" {
		fmt.Fprintf(out, "Trace: %s\n", link)
	}
	fmt.Fprintln(out)
	return outcome, nil
}
