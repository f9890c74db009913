package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Creation says which workloads roll when a source is created. It is the value of --roll-on-create.
type Creation string

// The values.
const (
	// CreateAuto rolls the workloads whose pods started without the source.
	CreateAuto Creation = "auto"
	// CreateAlways rolls all workloads, once for each object of the name, except those whose pods waited for it.
	CreateAlways Creation = "always"
	// CreateNever rolls none.
	CreateNever Creation = "never"
)

// Creations lists the values.
func Creations() []Creation { return []Creation{CreateAuto, CreateAlways, CreateNever} }

// Policy holds the choices of whoever operates the installation. The zero value means CreateAuto, and no roll when a source is deleted.
type Policy struct {
	Create Creation
	// Delete rolls workloads when a source is deleted that their pods can start without, once for each object.
	Delete bool
}

// Decide returns what a change of a source does to a workload:
//
//	w     the workload as last seen
//	now   the last event of the source
//	past  what is known about the time before it
//
// It compares states, not steps: events that are redelivered, late or superseded lead to the same end. Its event must be news: use Decide for the
// last event of a source that may have been decided long ago. It goes when nobody passes events on any more.
func (p Policy) Decide(w *workload.Workload, now events.Change, past Past) Decision {
	q, decision := p.ask(w, now, Memory{})
	if q == nil {
		return decision
	}
	q.past = past
	q.answer(&decision)
	return decision
}
