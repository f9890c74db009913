package inspect

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// who says who rolled a workload for a source, or would have.
type who string

const (
	both         who = "both"
	keyturnOnly  who = "keyturn only"
	reloaderOnly who = "reloader only"
	unclear      who = "unclear"
)

// comparedRow is the result for one workload and one source.
type comparedRow struct {
	who      who
	workload events.Workload
	source   string
	why      string
}

// compare orders rows, differences first.
func (r comparedRow) compare(other comparedRow) int {
	order := []who{keyturnOnly, reloaderOnly, unclear, both}
	return cmp.Or(
		cmp.Compare(slices.Index(order, r.who), slices.Index(order, other.who)), strings.Compare(r.workload.Namespace, other.workload.Namespace),
		strings.Compare(r.workload.String(), other.workload.String()), strings.Compare(r.source, other.source),
	)
}

// compare returns the rows of a workload. A mark from before since does not count.
func (d *decisions) compare(w events.Workload, mark reloaderMark, since time.Time) []comparedRow {
	if mark.at.Before(since.Truncate(time.Second)) {
		mark = reloaderMark{}
	}
	decided := d.of[w]
	sources := maps.Clone(d.marked(w.Namespace, mark))
	for source, about := range decided {
		if _, known := sources[source]; !known {
			sources[source] = about.changed
		}
	}
	var rows []comparedRow
	for source, changed := range sources {
		about, known := decided[source]
		if known {
			changed = about.changed
		}
		row := comparedRow{workload: w, source: source, why: about.why}
		switch rolled := mark.rolled(source, changed); {
		case about.rolls && rolled:
			row.who = both
		case about.rolls && w.Kind == "cronjob":
			row.who, row.why = unclear, join(about.why, "Reloader starts a Job, and leaves no mark on the CronJob")
		case about.rolls && mark.hides(changed):
			row.who, row.why = unclear, join(about.why, "Reloader has rolled it for "+mark.source.String()+" since, and names no other source")
		case about.rolls && mark.isBlank() && !mark.at.Before(changed):
			row.who, row.why = unclear, join(about.why, "Reloader has written it since, and leaves no mark on what it restarts")
		case about.rolls:
			row.who = keyturnOnly
		case rolled && known:
			row.who = reloaderOnly
		case rolled:
			row.who, row.why = reloaderOnly, "no decision: the workload does not opt in, or the change is none to Keyturn"
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

// rolled reports whether Reloader rolled for a source after the source changed.
func (m reloaderMark) rolled(source string, changed time.Time) bool {
	if m.at.IsZero() || m.at.Before(changed) {
		return false
	}
	if m.source.Name != "" {
		return m.source.String() == source
	}
	parsed, err := events.ParseSource(source)
	return err == nil && slices.Contains(m.variables, workload.ReloaderVariable(parsed))
}

// hides reports whether Reloader may have rolled for a source that changed at the given time, and has overwritten its mark since.
func (m reloaderMark) hides(changed time.Time) bool {
	return m.source.Name != "" && !m.at.Before(changed)
}

// isBlank reports whether Reloader wrote the workload and names no source, as when it restarts a Rollout.
func (m reloaderMark) isBlank() bool {
	return !m.at.IsZero() && m.source.Name == "" && len(m.variables) == 0
}
