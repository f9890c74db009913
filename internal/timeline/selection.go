package timeline

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
)

// Selection says which rotations to draw: those that have, for each field that is set, an event that matches it. A rotation
// is drawn with all its events.
type Selection struct {
	// Namespace is the namespace of the object.
	Namespace string
	// Source and Workload are objects such as secret/db and deployment/web.
	Source, Workload string
	// Verbs are verbs of events, such as failed and held.
	Verbs []string
	// Trace is the id of a trace in hexadecimal digits.
	Trace string
}

// wants reports whether a rotation is to be drawn.
func (s *Selection) wants(r *rotation) bool {
	has := func(is func(*fact) bool) bool { return slices.ContainsFunc(r.facts, is) }
	return has(func(f *fact) bool {
		return s.isWithin(f) && (s.Source == "" || f.isChange() && f.object.name == s.Source)
	}) &&
		has(func(f *fact) bool {
			return s.isWithin(f) && (s.Workload == "" || !f.isChange() && f.object.name == s.Workload)
		}) &&
		has(func(f *fact) bool { return len(s.Verbs) == 0 || slices.Contains(s.Verbs, string(f.verb)) }) &&
		has(func(f *fact) bool { return s.Trace == "" || f.trace.ID() == s.Trace })
}

// isWithin reports whether an event is in the namespace. A secret in a store has no namespace, and counts if Source is set.
func (s *Selection) isWithin(f *fact) bool {
	return s.Namespace == "" || f.object.namespace == s.Namespace || f.kind == events.KindOpenBao && s.Source != ""
}
