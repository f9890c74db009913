package actuate

import (
	"context"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// conclude reports a decision that needs no patch, or no further one, about an event that no pending change holds for it. The context is the event's.
func (n *notes) conclude(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	n.metrics.decided(ctx, decision.Reason)
	addDecision(e.span, decision)
	n.leave(ctx, e, w, decision)
}

// release ends a pending change with the decision about it, and reports that unless a rollout does. Only a dry run ends a change that would wait.
func (n *notes) release(ctx context.Context, w *workload.Workload, change *pendingChange, decision plan.Decision) {
	n.metrics.decided(ctx, decision.Reason)
	if decision.Reason.Action() != plan.Roll {
		n.leave(change.event.context(ctx), change.event, w, decision)
	}
	change.event.release()
}

// releaseAll ends all pending changes of a workload for one reason.
func (n *notes) releaseAll(ctx context.Context, p *pending, reason plan.Reason) {
	for source, change := range p.changes {
		decision := plan.Decision{Source: source, Reason: reason}
		addDecision(change.event.span, decision)
		n.release(ctx, p.seen, change, decision)
	}
}

// leave has a decision recorded that rolls nothing, logs it, and publishes its outcome unless the reason is silent.
func (n *notes) leave(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	if decision.Records && decision.Reason.Action() == plan.Skip {
		n.want(w.Key())
	}
	n.log.DebugContext(ctx, "workload left alone", "workload", w.ID.String(), "namespace", w.ID.Namespace,
		"source", decision.Source.String(), "reason", decision.Reason.String())
	if decision.Reason.Silent() {
		return
	}
	n.report(ctx, n.outcomes.skipped(ctx, e.change, w, decision))
}
