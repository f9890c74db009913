package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
)

// decision is what Keyturn last decided about a workload and a source, even in a dry run.
type decision struct {
	rolls bool
	// why is the reason and its sentence.
	why string
	// changed is the earliest time at which the source may have been written, or zero if its change is not in the history.
	changed time.Time
}

// decisions has all decisions of a period.
type decisions struct {
	of map[events.Workload]map[string]decision
	// changed has the time when each source last changed, by namespace.
	changed map[string]map[events.Source]time.Time
	// events has the time when the source of each change was written, by the ID of the event.
	events map[string]time.Time
}

// readDecisions reads the history.
func readDecisions(ctx context.Context, reader *events.Reader, query events.HistoryQuery) (*decisions, error) {
	d := &decisions{
		of: make(map[events.Workload]map[string]decision), changed: make(map[string]map[events.Source]time.Time), events: make(map[string]time.Time),
	}
	err := reader.History(ctx, query, func(stored events.Stored) error {
		if change, err := stored.Change(); err == nil {
			d.addChange(change)
		} else if outcome, err := stored.Outcome(); err == nil {
			d.addOutcome(outcome)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	return d, nil
}

func (d *decisions) addChange(change events.Change) {
	if change.Verb == events.VerbObserved && change.Since.IsZero() {
		return
	}
	// managedFields has whole seconds. If the time of the write is not known, use the time when the watcher saw it, which is a little later.
	at := change.Time.Add(-2 * time.Second)
	if !change.WrittenAt.IsZero() {
		at = change.WrittenAt
	}
	at = at.Truncate(time.Second)
	d.events[change.ID()] = at
	in := change.Source.Namespace
	if d.changed[in] == nil {
		d.changed[in] = make(map[events.Source]time.Time)
	}
	d.changed[in][change.Source] = at
}

// addOutcome keeps the last decision to roll, or the last decision if none was to roll.
func (d *decisions) addOutcome(outcome events.Outcome) {
	rolls := outcome.Verb != events.VerbSkipped || slices.Contains([]string{plan.DryRun.String(), plan.PodsNewer.String()}, outcome.Reason)
	w := outcome.Workload
	w.UID = ""
	if d.of[w] == nil {
		d.of[w] = make(map[string]decision)
	}
	for _, source := range outcome.Sources {
		if last, ok := d.of[w][source.Source]; ok && last.rolls && !rolls {
			continue
		}
		d.of[w][source.Source] = decision{rolls: rolls, why: join(outcome.Reason, outcome.Message), changed: d.events[source.Event]}
	}
}
