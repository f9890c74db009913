package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// decision is the last decision about a workload and a source, even in a dry run.
type decision struct {
	rolls bool
	why   string
	// changed is the earliest time at which the source may have been written, or zero if its change is not in the history.
	changed time.Time
}

// decisions contains all decisions of a period.
type decisions struct {
	of map[events.Workload]map[string]decision
	// changed contains the time of each source's last change, by namespace.
	changed map[string]map[events.Source]time.Time
	// events contains the time when the source of each change was written, by the ID of the event.
	events map[string]time.Time
}

func readDecisions(ctx context.Context, reader *bus.Reader, query bus.HistoryQuery) (*decisions, error) {
	d := &decisions{
		of: make(map[events.Workload]map[string]decision), changed: make(map[string]map[events.Source]time.Time), events: make(map[string]time.Time),
	}
	return d, readHistory(ctx, reader, query, d.addChange, d.addOutcome)
}

func (d *decisions) addChange(change events.Change) {
	if change.Verb == events.VerbObserved && change.Since.IsZero() {
		return
	}
	// managedFields have whole seconds. If the time of the write is unknown, use the time when the watcher saw the change, which is a little later.
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
	reason, _ := plan.Named(outcome.Reason, outcome.Message)
	rolls := outcome.Verb != events.VerbSkipped || reason == plan.DryRun || reason == plan.PodsNewer
	w := outcome.Workload
	w.UID = ""
	if d.of[w] == nil {
		d.of[w] = make(map[string]decision)
	}
	for _, source := range outcome.Sources {
		if d.of[w][source.Source].rolls && !rolls {
			continue
		}
		d.of[w][source.Source] = decision{rolls: rolls, why: join(outcome.Reason, outcome.Message), changed: d.events[source.Event]}
	}
}

// marked returns the sources that a mark may be about, with the times of their changes: the source that the mark names, and sources of its variables
// that have changed. Others are omitted, because a variable is never removed.
func (d *decisions) marked(namespace string, mark reloaderMark) map[string]time.Time {
	sources := make(map[string]time.Time)
	for source, at := range d.changed[namespace] {
		if slices.Contains(mark.variables, workload.ReloaderVariable(source)) {
			sources[source.String()] = at
		}
	}
	if mark.source.Name != "" {
		named := mark.source
		named.Namespace = namespace
		sources[named.String()] = d.changed[namespace][named]
	}
	return sources
}
