package plan

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Creation is which workloads roll when a source is created: the value of --roll-on-create.
type Creation string

// The values.
const (
	// CreateAuto rolls those whose pods started without the source.
	CreateAuto Creation = "auto"
	// CreateAlways rolls all, once for each object of the name, but for those whose pods waited for it.
	CreateAlways Creation = "always"
	// CreateNever rolls none.
	CreateNever Creation = "never"
)

// Creations lists the values.
func Creations() []Creation { return []Creation{CreateAuto, CreateAlways, CreateNever} }

// Policy is what the operator of an installation has chosen. The zero value has CreateAuto.
type Policy struct {
	Create Creation
	// Delete has a deleted source roll the workloads whose pods can start without it, once for each object.
	Delete bool
}

// Decide returns what a change of a source does to a workload:
//
//	w     the workload as last seen
//	now   the last event of the source
//	past  what is known of the time before it
//
// It compares states, not steps: an event that is redelivered, late, or supersedes others leads to the same end.
func (p Policy) Decide(w *workload.Workload, now events.Change, past Past) Decision {
	ref := w.Reference(now.Source)
	want := w.OptIn.Wants(now.Source, ref, now.Match)
	decision := Decision{Source: now.Source, Want: want}
	if !want.Wanted() {
		decision.Reason = unwanted[want.Reason]
		return decision
	}
	q := newQuestion(w, ref, want.Keys, now, past)
	q.policy = p
	q.date()
	decision.Keys = q.seen.changed
	decision.Record = q.record()
	decision.Reason = q.reason()
	rolls := decision.Reason.Action() == Roll
	switch {
	case rolls && w.Suspended:
		decision.Reason = Suspended
	case w.Aborted && (rolls || decision.Reason == PodsStarting):
		decision.Reason = Aborted
	case rolls && now.Hold != "" && !w.RollsNow():
		decision.Reason, decision.Hold = SourceOnHold, now.Hold
	}
	decision.Anew = q.isAnew()
	decision.Contradicted = q.isContradicted()
	decision.Undated = decision.Reason.Action() == Roll && !q.recorded && past.From == nil && !q.isDated()
	return decision
}
