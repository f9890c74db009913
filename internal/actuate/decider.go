package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// decider makes the decisions of plan.Decide, with what this actuator remembers.
type decider struct {
	policy plan.Policy
	// dryRun is Options.DryRun: nothing is patched.
	dryRun bool
	state  *state
	denied denials
	now    func() time.Time
}

// decide returns what the last event of a source means to a workload. Memory has what is remembered of the change if it is pending, or has just come.
func (d *decider) decide(w *workload.Workload, change events.Change, memory plan.Memory) plan.Decision {
	memory.Now, memory.Base, memory.GapFrom = d.now(), d.state.baseOf(w.Key(), change), d.state.gapFrom
	memory.Owed = memory.Owed || d.denied.has(w.Key(), change)
	return plan.Decide(w, change, memory, d.policy)
}

// decideAll decides about each source that a workload wants, for the record. What has come and gone was quick, or else the workload is rolled for it.
func (d *decider) decideAll(w *workload.Workload) []plan.Decision {
	var decisions []plan.Decision
	for _, source := range d.state.concerning(w) {
		if change, last := d.state.Change(source); last != nil {
			decisions = append(decisions, d.decide(w, change, plan.Memory{Since: d.now()}))
		}
	}
	return decisions
}

// forget drops what is remembered of a workload that is gone.
func (d *decider) forget(key workload.Key) {
	delete(d.denied, key)
	delete(d.state.met, key)
}
