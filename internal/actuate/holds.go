package actuate

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// obstacle says why a workload that is to be rolled must wait; ReasonNone where nothing is in its way.
func (e *engine) obstacle(w *workload.Workload, p *pending) plan.Reason {
	for _, c := range p.claims {
		decision := plan.Decide(w, c.change, c.from)
		if decision.Reason.Action() == plan.Skip {
			continue
		}
		for key := range e.failed {
			peer := e.index.get(key)
			if key != p.key && peer != nil && peer.Rolled[decision.Source.String()].IsOf(decision.Record) {
				return plan.PeerFailed
			}
		}
		if e.index.hasWaves() && e.lowerWave(w, decision.Source) {
			return plan.LowerWave
		}
	}
	if e.options.MaxRollouts > 0 && w.Progress.Pods > 0 && e.inProgress() >= e.options.MaxRollouts {
		return plan.Limit
	}
	return plan.None
}

// lowerWave tells whether a workload of a lower wave is not done with a change of the source.
func (e *engine) lowerWave(w *workload.Workload, source events.Source) bool {
	for _, peer := range e.index.dependents(source) {
		if peer.Wave >= w.Wave {
			continue
		}
		key := peer.Key()
		if p := e.queue.byKey[key]; p != nil && p.claims[source] != nil {
			return true
		}
		if r := e.inFlight[key]; r != nil && r.pending.claims[source] != nil {
			return true
		}
		if r := e.rollouts[key]; r != nil && r.isFor(source) {
			return true
		}
	}
	return false
}

// inProgress counts the rollouts that take a place: those that replace pods, or soon will.
func (e *engine) inProgress() int {
	count := 0
	for key, r := range e.rollouts {
		if w := e.index.get(key); w != nil && w.Progress.Pods > 0 && !r.waits(w) {
			count++
		}
	}
	for key, r := range e.inFlight {
		if e.rollouts[key] == nil && r.rolls && r.workload.Progress.Pods > 0 {
			count++
		}
	}
	return count
}

// holdBack keeps a workload that must wait, and says so once.
func (e *engine) holdBack(ctx context.Context, p *pending, w *workload.Workload, why plan.Reason) {
	said := p.said == why
	e.queue.hold(p, why)
	if said {
		return
	}
	p.said = why
	e.log.InfoContext(ctx, "a workload waits", "workload", w.ID.String(), "namespace", w.ID.Namespace, "reason", why.String())
	e.metrics.decided(ctx, why)
	trace.SpanFromContext(ctx).AddEvent(why.String(), trace.WithAttributes(reasonKey.String(why.String())))
	e.reporter.report(ctx, e.outcome(ctx, events.VerbHeld, w, p, why))
}

// releaseHeld has another look at the workloads that wait, after something has moved.
func (e *engine) releaseHeld() {
	now := e.options.Now()
	for _, p := range e.queue.held {
		e.queue.release(p, now)
	}
}
