package actuate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// decide returns the decision about the last event of a source for a workload. Memory is what this actuator remembers of the change.
func (t *term) decide(w *workload.Workload, change events.Change, memory plan.Memory) plan.Decision {
	memory.Now, memory.Base, memory.GapFrom = t.now(), t.state.baseOf(w.Key(), change.Source), t.state.gapFrom
	memory.Owed = memory.Owed || t.denials.has(w.Key(), change)
	return plan.Decide(w, change, memory, t.options.Policy())
}

// decideAll decides about all sources that a workload wants, for its record, as if each change had just arrived. Only pending changes roll.
func (t *term) decideAll(w *workload.Workload) []plan.Decision {
	var decisions []plan.Decision
	for _, source := range t.state.concerning(w) {
		if change, last := t.state.Change(source); last != nil {
			decisions = append(decisions, t.decide(w, change, plan.Memory{Since: t.now()}))
		}
	}
	return decisions
}

// verdict is the result of deciding about the changes of one workload: doing needs a patch, leaving does not.
type verdict struct {
	doing, leaving []plan.Decision
	// contradicted says that the resourceVersions of the workload and of a source could not be compared.
	contradicted bool
	// rolls says that the patch replaces the pods. since is when the first change that requires a roll arrived.
	rolls bool
	since time.Time
	// waits is why the workload must wait before a decision. Its reason is plan.None if it need not wait.
	waits obstacle
}

// verdict decides about the changes of a workload in the order of their sources, so that it always reports the same of several reasons to hold.
func (t *term) verdict(p *pending, w *workload.Workload) verdict {
	var v verdict
	for _, c := range slices.SortedFunc(maps.Values(p.changes), bySource) {
		decision := t.decide(w, c.change, p.memory(c, t.now()))
		c.owed = c.owed || decision.Owes()
		v.contradicted = v.contradicted || decision.Contradicted
		if t.options.DryRun {
			decision.Reason = inDryRun(decision.Reason)
		}
		if t.options.DryRun || decision.Reason.Action() == plan.Skip {
			v.leaving = append(v.leaving, decision)
			continue
		}
		v.do(c, decision)
	}
	if !v.rolls {
		return v
	}
	v.waits = obstacle{}
	for i := range v.doing { // The roll replaces the pods anyway, and the new ones read the current content.
		if v.doing[i].Reason.Action() == plan.Hold {
			v.doing[i].Reason = plan.PodsNewer
		}
	}
	return v
}

func (v *verdict) do(c *pendingChange, decision plan.Decision) {
	v.doing = append(v.doing, decision)
	switch decision.Reason.Action() {
	case plan.Roll:
		if !v.rolls || c.since.Before(v.since) {
			v.since = c.since
		}
		v.rolls = true
	case plan.Hold:
		v.waits = obstacle{reason: decision.Reason}
		if decision.Hold != "" {
			v.waits.said = c.change.Source.String() + ": " + decision.Hold
		}
	default:
	}
}

func bySource(a, b *pendingChange) int {
	return strings.Compare(a.change.Source.String(), b.change.Source.String())
}

// inDryRun returns the reason that a dry run reports. A dry run waits for nothing.
func inDryRun(reason plan.Reason) plan.Reason {
	switch {
	case reason.Action() == plan.Roll:
		return plan.DryRun
	case reason == plan.PodsStarting:
		return plan.PodsNewer // PodsStarting ends as PodsNewer.
	default:
		return reason
	}
}
