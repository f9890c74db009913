package actuate

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// kindRetry is how often a workload is looked at whose kind is not served.
const kindRetry = 10 * time.Second

// keep makes a workload wait.
func (d *dispatcher) keep(p *pending, why obstacle) {
	if why.reason == plan.Pausing {
		p.gathered = why.end
	}
	if !p.paced.IsZero() {
		d.debounce.schedule(p, p.paced)
		return
	}
	d.debounce.hold(p, why.reason)
	if !why.end.IsZero() {
		d.debounce.schedule(p, why.end)
	}
}

// hold keeps a workload that must wait, and reports the reason once. The context carries the span of the decision.
func (d *dispatcher) hold(ctx context.Context, p *pending, w *workload.Workload, doing []plan.Decision, why obstacle) {
	d.keep(p, why)
	if p.isReported(why.reason) {
		return
	}
	outcome := d.outcomes.held(ctx, w, p, doing, why)
	known := len(p.reported) == 0 && rests(why.reason) && d.told.has(outcome)
	p.report(why.reason)
	d.log.InfoContext(ctx, "workload held", "workload", w.ID.String(), "namespace", w.ID.Namespace, "reason", why.reason.String())
	d.metrics.decided(ctx, why.reason)
	trace.SpanFromContext(ctx).AddEvent(why.reason.String(), trace.WithAttributes(reasonKey.String(why.reason.String())))
	if !why.reason.Silent() && !known {
		d.report(ctx, outcome)
	}
}

// awaitKind holds a workload until its kind may be served again.
func (d *dispatcher) awaitKind(ctx context.Context, p *pending) {
	why := obstacle{reason: plan.KindNotServed}
	if p.isReported(why.reason) {
		d.keep(p, why)
	} else {
		span := startPlan(ctx, d.options.Tracer, p, p.seen)
		defer span.End()
		var doing []plan.Decision
		for _, c := range slices.SortedFunc(maps.Values(p.changes), bySource) {
			doing = append(doing, plan.Decision{Source: c.change.Source, Reason: why.reason})
		}
		d.hold(trace.ContextWithSpan(context.WithoutCancel(ctx), span), p, p.seen, doing, why)
	}
	d.debounce.schedule(p, d.now().Add(kindRetry))
}

// rests reports whether a workload that is held for a reason waits because people chose so: for a time, or for something that they do. It waits for
// no other workload: there may be thousands of them, for days, and no event of others makes them be reviewed. Others wait for it only if it waits
// for a moment: see obstacle.soon.
func rests(why plan.Reason) bool { return why.Waiting() == plan.ForPeople }

// releaseAll makes every held workload due except those that rest, at one time: then the one that has waited longest is first.
func (d *debounce) releaseAll() {
	now := d.now()
	for _, p := range d.byKey {
		if p.isHeld() && !rests(p.held) {
			d.release(p, now)
		}
	}
}

// wake makes a workload that has changed due if it rests, waits for its pods or for a time that depends on them, or is one whose patch was refused as
// it was before. The notes on it may be gone, too.
func (d *debounce) wake(key workload.Key) {
	p := d.byKey[key]
	if p == nil {
		return
	}
	p.noteAt = time.Time{}
	isRewritten := p.isRewritten(d.index.Get(key))
	if isRewritten {
		p.tryAnew(p.first)
	}
	if isRewritten || rests(p.held) || p.held == plan.PodsStarting || p.held == plan.Aborted || !p.paced.IsZero() {
		d.release(p, d.now())
		d.orders.review(key)
	}
}
