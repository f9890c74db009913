package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// maxSaid is the maximum number of sources in the text of a gate.
const maxSaid = 3

// GateOfChanges returns the gate caused by the changes themselves: if all sources to roll for change endlessly, the workload is rolled less and less
// often. A failing workload is rolled at once, because the change may be the fix.
func GateOfChanges(w *workload.Workload, doing []Decision, now time.Time) Gate {
	if w.RollsNow() || w.FailsBefore() || w.HasFailed() {
		return Gate{}
	}
	gate, said := Gate{}, []string(nil)
	for _, decision := range doing {
		if decision.Reason.Action() != Roll {
			continue
		}
		slow := w.Slowdown(decision.Source, decision.Keys, now)
		if slow.Until.IsZero() {
			return Gate{}
		}
		if gate.Reason == None || slow.Until.Before(gate.End) {
			gate = Gate{Reason: Endless, End: slow.Until, IsTold: slow.IsTold}
		}
		said = append(said, decision.endless())
	}
	if more := len(said) - maxSaid; more > 0 {
		said = append(said[:maxSaid], strconv.Itoa(more)+" more")
	}
	gate.Said = strings.Join(said, "; ")
	return gate
}

// endless returns a text with the source, its changed keys and its writers.
func (d Decision) endless() string {
	text := d.Source.String()
	if len(d.Keys) > 0 {
		text += " (" + workload.JoinKeys(d.Keys) + ")"
	}
	if len(d.Writers) > 0 {
		text += ", written by " + strings.Join(d.Writers, " and ")
	}
	if d.Source.Kind == events.KindSecretProviderClass {
		text += ", whose provider may report versions that are not stable: name a secretKey for each object"
	}
	return text
}

// altered returns the sorted keys that the pods read, that count, and that have changed since the record, or with the last change if there is no
// record: later events may be about other keys. It considers only listed keys, and returns nil if the source lists none.
func (q *question) altered() []string {
	if q.now.Truncated && q.now.Buckets == nil {
		return q.seen.changed
	}
	names := q.want.Keys
	if names == nil {
		names = slices.Sorted(maps.Keys(q.now.Keys))
	}
	var altered []string
	for _, name := range names {
		key, _ := q.now.Key(name)
		isNew := key.ChangedAt != "" && key.ChangedAt == q.seen.changedAt
		if q.recorded {
			isNew = events.Newer(key.ChangedAt, q.last.Version)
		}
		if isNew && doesCount(name, key, q.want) && doesChangeCount(name, key, q.want) {
			altered = append(altered, name)
		}
	}
	return altered
}

// writers returns who has written the source, according to the event: field managers, or else the object behind it or the author in a store.
func (q *question) writers() []string {
	switch now := q.now; {
	case len(now.Writers) > 0:
		return now.Writers
	case now.Cause != nil && now.Cause.Source != "":
		return []string{events.Printable(now.Cause.Source)}
	case now.Store != nil && now.Store.By != "":
		return []string{events.Printable(now.Store.By)}
	}
	return nil
}
