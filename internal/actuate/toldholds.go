package actuate

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// toldPatience is how long a new leader waits to learn what was told.
const toldPatience = 5 * time.Second

// toldHolds has the workloads of which it was last told that they wait, with that outcome. Not every leader tells it again.
type toldHolds map[workload.Key]events.Outcome

// read takes what earlier leaders have told. If nobody answers, it is told again.
func (t toldHolds) read(ctx context.Context, bus *events.Bus, log *slog.Logger) {
	bounded, cancel := context.WithTimeout(ctx, toldPatience)
	defer cancel()
	err := bus.LastOutcomes(bounded, bus.Cluster(), func(stored events.Stored) error {
		if last, err := stored.Outcome(); err == nil && last.Verb == events.VerbHeld {
			t[workload.KeyOf(last.Workload)] = last
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "last outcomes not readable; what waits may be told again", "err", err)
	}
}

// has reports whether it was told that the workload waits for the same reason, with all of the same changes.
func (t toldHolds) has(held events.Outcome) bool {
	last, known := t[workload.KeyOf(held.Workload)]
	return known && last.Reason == held.Reason && !slices.ContainsFunc(held.Sources, func(waits events.OutcomeSource) bool {
		return !slices.ContainsFunc(last.Sources, func(told events.OutcomeSource) bool {
			return told.Source == waits.Source && told.Event == waits.Event
		})
	})
}
