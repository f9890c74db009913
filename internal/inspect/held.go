package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// writeHeld writes why a workload is held, and for whom, if the last that happened because of a change was that.
func writeHeld(ctx context.Context, reader *events.Reader, cluster string, id events.Workload, out io.Writer) error {
	query := events.HistoryQuery{
		Clusters: []string{cluster}, Kind: events.KindRollout, Namespace: id.Namespace, Name: id.Kind + "-" + id.Name,
	}
	var held *events.Outcome
	err := reader.History(ctx, query, func(stored events.Stored) error {
		outcome, unreadable := stored.Outcome()
		readable := unreadable == nil
		switch {
		case !readable || outcome.Workload.UID != id.UID:
			// It is a dead letter, or about a workload that had the name before.
		case outcome.Verb == events.VerbHeld:
			held = &outcome
		case held != nil && !outcome.StartedAt.IsZero() && outcome.StartedAt.Before(held.Time):
			// It is the end of an earlier rollout.
		case held != nil && shareSource(*held, outcome):
			held = nil
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	if held != nil {
		fmt.Fprintf(out, "It has been held since %s: %s (%s)\n\n", held.Time.UTC().Format(time.RFC3339), held.Message, held.Reason)
	}
	return nil
}

func shareSource(a, b events.Outcome) bool {
	return slices.ContainsFunc(a.Sources, func(s events.OutcomeSource) bool {
		return slices.ContainsFunc(b.Sources, func(other events.OutcomeSource) bool { return other.Source == s.Source })
	})
}
