package actuate

import (
	"context"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// concluder finishes changes that need no patch, or no further one: it reports the decisions.
type concluder struct {
	*reporter
	notes *notes
}

// conclude reports a decision that needs no patch, about an event that no pending change holds for it. The context is the event's.
func (c *concluder) conclude(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	c.metrics.decided(ctx, decision.Reason)
	addDecision(e.span, decision)
	c.report(ctx, e, w, decision)
}

// release ends a pending change with the decision about it, and reports that unless a rollout does. Only a dry run ends a change that would wait.
func (c *concluder) release(ctx context.Context, w *workload.Workload, change *pendingChange, decision plan.Decision) {
	c.metrics.decided(ctx, decision.Reason)
	if decision.Reason.Action() != plan.Roll {
		c.report(change.event.context(ctx), change.event, w, decision)
	}
	change.event.release()
}

// releaseAll ends all pending changes of a workload for one reason.
func (c *concluder) releaseAll(ctx context.Context, p *pending, reason plan.Reason) {
	for source, change := range p.changes {
		decision := plan.Decision{Source: source, Reason: reason}
		addDecision(change.event.span, decision)
		c.release(ctx, p.seen, change, decision)
	}
}

// report logs a decision that rolls nothing, and publishes its outcome unless the reason is silent.
func (c *concluder) report(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	if decision.Records && decision.Reason.Action() == plan.Skip {
		c.notes.want(w.Key())
	}
	c.log.DebugContext(ctx, "workload left alone", "workload", w.ID.String(), "namespace", w.ID.Namespace,
		"source", decision.Source.String(), "reason", decision.Reason.String())
	if decision.Reason.Silent() {
		return
	}
	c.reporter.report(ctx, c.outcomes.skipped(ctx, e.change, w, decision))
}
