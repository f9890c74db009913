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

// decisions has all decisions of a period.
type decisions struct {
	of map[events.Workload]map[string]decision
	// changed has the time when each source last changed, by namespace.
	changed map[string]map[events.Source]time.Time
	// events has the time when the source of each change was written, by the ID of the event.
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

// compare returns the rows of a workload. A mark from before since does not count.
func (d *decisions) compare(w events.Workload, mark reloaderMark, since time.Time) []comparedRow {
	if mark.at.Before(since.Truncate(time.Second)) {
		mark = reloaderMark{}
	}
	sources := d.marked(w.Namespace, mark)
	for source, about := range d.of[w] {
		sources[source] = about.changed
	}
	var rows []comparedRow
	for source, changed := range sources {
		about, isDecided := d.of[w][source]
		row := comparedRow{workload: w, source: source, why: about.why}
		switch rolled := mark.rolled(source, changed); {
		case about.rolls && rolled:
			row.by = both
		case about.rolls && w.Kind == "cronjob":
			row.by, row.why = unclear, join(about.why, "Reloader starts a Job, and leaves no mark on the CronJob")
		case about.rolls && mark.hides(changed):
			row.by, row.why = unclear, join(about.why, "Reloader has rolled it for "+mark.source.String()+" since, and names no other source")
		case about.rolls && mark.isBlank() && !mark.at.Before(changed):
			row.by, row.why = unclear, join(about.why, "Reloader has written it since, and leaves no mark on what it restarts")
		case about.rolls:
			row.by = keyturnOnly
		case rolled && isDecided:
			row.by = reloaderOnly
		case rolled:
			row.by, row.why = reloaderOnly, "no decision: the workload does not opt in, or the change is none to Keyturn"
		default:
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// marked returns the sources that a mark may be about, and when they changed: the source that the mark names, and those of its variables'
// sources that have changed. Others are left out, because a variable is never removed.
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
