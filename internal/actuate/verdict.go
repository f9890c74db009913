package actuate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// verdict is the result of deciding about the changes of one workload: doing needs a patch, leaving does not.
type verdict struct {
	doing, leaving []plan.Decision
	// contradicted says that resourceVersions of the workload and a source could not be compared.
	contradicted bool
	// rolls says that the patch replaces the pods. since is when the first of the changes that require it came.
	rolls bool
	since time.Time
	// waits is why the changes cannot be decided yet. Its reason is plan.None if they can.
	waits obstacle
}

// verdict decides about the changes of a workload in the order of their sources. If there are several reasons to hold it, it thus always reports the
// same.
func (d *decider) verdict(p *pending, w *workload.Workload) verdict {
	var v verdict
	for _, c := range slices.SortedFunc(maps.Values(p.changes), bySource) {
		decision := d.decide(w, c.change, p.memory(c, d.now()))
		c.owed = c.owed || decision.Owes()
		v.contradicted = v.contradicted || decision.Contradicted
		if d.dryRun {
			decision.Reason = inDryRun(decision.Reason)
		}
		if d.dryRun || decision.Reason.Action() == plan.Skip {
			v.leaving = append(v.leaving, decision)
			continue
		}
		v.do(c, decision)
	}
	if v.rolls {
		v.rollNow()
	}
	return v
}

// do adds a decision that needs the patch.
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

// rollNow makes changes not wait for pods that a roll for other changes is about to replace: the new pods read the current content.
func (v *verdict) rollNow() {
	v.waits = obstacle{}
	for i := range v.doing {
		if v.doing[i].Reason.Action() == plan.Hold {
			v.doing[i].Reason = plan.PodsNewer
		}
	}
}

func bySource(a, b *pendingChange) int {
	return strings.Compare(a.change.Source.String(), b.change.Source.String())
}

// inDryRun returns the reason that a dry run reports, which waits for nothing.
func inDryRun(reason plan.Reason) plan.Reason {
	switch {
	case reason.Action() == plan.Roll:
		return plan.DryRun
	case reason == plan.PodsStarting:
		return plan.PodsNewer // That is what it becomes.
	default:
		return reason
	}
}
