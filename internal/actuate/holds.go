package actuate

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// obstacle says why a workload that is to be rolled must wait; ReasonUnknown where nothing is in its way.
func (e *engine) obstacle(w *workload, p *pending) Reason {
	for _, c := range p.claims {
		decision := plan(w, c.change, c.from)
		if decision.Reason.Action() == Skip {
			continue
		}
		for key := range e.failed {
			peer := e.index.get(key)
			if key != p.key && peer != nil && peer.rolled[decision.Source.String()].isOf(decision.Record) {
				return ReasonPeerFailed
			}
		}
		if e.index.hasWaves() && e.lowerWave(w, decision.Source) {
			return ReasonLowerWave
		}
	}
	if e.options.MaxRollouts > 0 && w.progress.pods > 0 && e.inProgress() >= e.options.MaxRollouts {
		return ReasonLimit
	}
	return ReasonUnknown
}

// lowerWave tells whether a workload of a lower wave is not done with a change of the source.
func (e *engine) lowerWave(w *workload, source events.Source) bool {
	for _, peer := range e.index.dependents(source) {
		if peer.wave >= w.wave {
			continue
		}
		key := peer.key()
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
		if w := e.index.get(key); w != nil && w.progress.pods > 0 && !r.waits(w) {
			count++
		}
	}
	for key, r := range e.inFlight {
		if e.rollouts[key] == nil && r.rolls && r.workload.progress.pods > 0 {
			count++
		}
	}
	return count
}

// holdBack keeps a workload that must wait, and says so once.
func (e *engine) holdBack(ctx context.Context, p *pending, w *workload, why Reason) {
	said := p.said == why
	e.queue.hold(p, why)
	if said {
		return
	}
	p.said = why
	e.log.InfoContext(ctx, "a workload waits", "workload", w.id.String(), "namespace", w.id.Namespace, "reason", why.String())
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
