package plugin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// fact is the part of an event that the page needs.
type fact struct {
	verb   events.Verb
	kind   events.Kind
	object eventObject
	// id is the id of the event. Outcomes refer to changes by their ids.
	id     string
	causes []string
	// sources are the names of the changed sources of an outcome.
	sources []string
	// at is the event's time. written is when its source was written, if known, and started is when the rollout began.
	at, written, started time.Time
	reason, message      string
	// about contains details of a change: its version, author and keys.
	about string
	// writer is the writer of a Secret: externalsecret/db.
	writer string
	trace  events.TraceContext
}

// eventObject is the source or the workload of an event.
type eventObject struct{ cluster, namespace, name string }

func (o eventObject) compare(other eventObject) int {
	return cmp.Or(strings.Compare(o.cluster, other.cluster), strings.Compare(o.namespace, other.namespace), strings.Compare(o.name, other.name))
}

func (f *fact) isChange() bool {
	return f.kind != events.KindRollout && f.kind != events.KindProjection
}

// newFact returns the fact of an event. It returns false for events outside of rotations, such as claims and heartbeats.
func newFact(stored events.Stored) (fact, bool) {
	if c, err := stored.Change(); err == nil {
		return changeFact(c), true
	}
	if o, err := stored.Outcome(); err == nil {
		return outcomeFact(o), true
	}
	if p, err := stored.Projection(); err == nil {
		return projectionFact(p), true
	}
	return fact{}, false
}

func changeFact(c events.Change) fact {
	f := fact{
		verb: c.Verb, kind: c.Source.Kind, object: eventObject{c.Cluster, c.Source.Namespace, c.Source.String()}, id: c.ID(),
		at: c.Time, written: c.WrittenAt, trace: c.Trace,
	}
	var about []string
	if c.Store != nil && c.Store.Version > 0 {
		about = append(about, "version "+strconv.FormatInt(c.Store.Version, 10))
	}
	if c.Store != nil && c.Store.By != "" {
		about = append(about, "by "+c.Store.By)
	}
	if len(c.Changed) > 0 {
		about = append(about, "keys "+strings.Join(c.Changed, ", "))
	}
	if c.Cause != nil {
		f.causes, f.writer = []string{c.Cause.Event}, c.Cause.Source
		if c.Cause.Source != "" {
			about = append(about, "by "+c.Cause.Source)
		}
	}
	if c.Status != nil {
		f.reason = c.Status.Reason
	}
	if c.Hold != "" {
		about = append(about, "on hold: "+c.Hold)
	}
	f.about = strings.Join(about, "; ")
	return f.bounded()
}

func outcomeFact(o events.Outcome) fact {
	f := fact{
		verb: o.Verb, kind: events.KindRollout, object: eventObject{o.Cluster, o.Workload.Namespace, o.Workload.String()}, id: o.ID(),
		causes: []string{o.Cause}, at: o.Time, started: o.StartedAt, reason: o.Reason, message: o.Message, trace: o.Trace,
	}
	for _, source := range o.Sources {
		f.causes = append(f.causes, source.Event)
		f.sources = append(f.sources, source.Source)
	}
	return f.bounded()
}

func projectionFact(p events.Projection) fact {
	f := fact{
		verb: p.Verb, kind: events.KindProjection, object: eventObject{p.Cluster, p.Target.Namespace, p.Target.String()}, id: p.ID(),
		causes: []string{p.Cause}, at: p.Time, reason: p.Reason, message: p.Message, trace: p.Trace,
	}
	for _, field := range p.Fields {
		f.sources = append(f.sources, field.Source)
	}
	return f.bounded()
}

// These limit each event. A message is a sentence, and the first sources of an outcome are enough.
const (
	maxText   = 1000
	maxCauses = 100
)

// bounded returns the fact with printable texts, within the limits.
func (f fact) bounded() fact {
	f.causes = slices.DeleteFunc(f.causes, func(id string) bool { return id == "" })
	f.causes = f.causes[:min(len(f.causes), maxCauses)]
	f.sources = f.sources[:min(len(f.sources), maxCauses)]
	f.reason, f.message, f.about = cut(f.reason), cut(f.message), cut(f.about)
	return f
}

// cut returns the text as a printable line within the limit.
func cut(text string) string {
	clean := events.Printable(text)
	if runes := []rune(clean); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return clean
}
