package actuate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// dispatcher decides about the workloads that are due, starts their patches, and handles the results (completion.go).
type dispatcher struct {
	*term
	warned bool
	told   toldHolds
	// unrecorded contains the kinds for which a missing permission to write records was logged.
	unrecorded map[string]bool
}

// dispatch handles the due workloads, and those that wait for a slot while slots are free, until the patcher is full.
func (d *dispatcher) dispatch(ctx context.Context) {
	hasSlot := func(namespace string) bool {
		return d.patcher.hasRoom(namespace) && d.rollouts.full(namespace) == plan.None
	}
	for !d.patcher.full() {
		d.orders.wake() // The previous step may have ended the wait of others.
		p := d.debounce.pop(d.patcher.hasRoom, hasSlot)
		if p == nil {
			return
		}
		if d.patcher.busy(p.key) {
			d.debounce.hold(p, plan.Busy)
			continue
		}
		switch w := d.index.Get(p.key); {
		case w != nil && !w.Unserved:
			d.act(ctx, p, w)
		case d.index.IsUnserved(p.key, d.now()):
			d.awaitKind(ctx, p)
		default:
			d.debounce.drop(p)
			d.notes.releaseGone(ctx, p)
		}
	}
}

// act decides about the changes of a workload, and then patches, holds or drops it.
func (d *dispatcher) act(ctx context.Context, p *pending, w *workload.Workload) {
	v := d.verdict(p, w)
	if v.contradicted && !d.warned {
		d.warned = true
		d.log.WarnContext(ctx, "resourceVersions of workloads and sources are not comparable; workloads may roll for changes that they already have",
			"workload", w.ID.String(), "namespace", w.ID.Namespace)
	}
	p.rollsSince = v.since
	why := d.admission.obstacle(p, w, v)
	p.paced = why.paced
	if why.begins {
		d.notes.beginPause(ctx, w, p)
	}
	isKnown := !p.paced.IsZero() || why.reason != plan.None && p.isReported(why.reason)
	if isKnown && len(v.leaving) == 0 {
		// A waiting workload is decided again each time it is released. Nothing has changed, so there is nothing to report.
		d.keep(p, why)
		return
	}
	span := startPlan(ctx, d.options.Tracer, p, w)
	defer span.End()
	for _, decision := range slices.Concat(v.leaving, v.doing) {
		addDecision(span, decision)
	}
	for _, decision := range v.leaving { // Skipped changes need no patch.
		c := p.changes[decision.Source]
		delete(p.changes, decision.Source)
		if d.settling.keeps(c.event, w, decision) {
			c.event.release()
		} else {
			d.notes.release(ctx, w, c, decision)
		}
	}
	switch {
	case len(v.doing) == 0:
		d.debounce.drop(p)
	case !p.paced.IsZero():
		d.keep(p, why)
	case why.reason != plan.None:
		d.hold(trace.ContextWithSpan(context.WithoutCancel(ctx), span), p, w, v.doing, why)
	default:
		d.debounce.drop(p)
		d.start(ctx, span, p, w, v.doing)
	}
}

func (d *dispatcher) start(ctx context.Context, span trace.Span, p *pending, w *workload.Workload, doing []plan.Decision) {
	k, _ := d.kinds.Named(w.ID.Kind) // The index contains no other kinds.
	r, err := newTask(k, w, doing, p, d.now())
	r.span = span
	if err != nil {
		span.SetStatus(codes.Error, "no patch")
		d.denied(ctx, r, fmt.Errorf("making a patch: %w", err))
		return
	}
	d.patcher.start(ctx, r)
	d.orders.review(p.key)
}

// kindRetry is the interval between checks of a workload whose kind is not served.
const kindRetry = 10 * time.Second

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
	switch {
	case why.reason.Silent() || known:
	case why.told:
		d.outbox.add(outcome) // The Kubernetes Event was written before, but the history contains each hold.
	default:
		d.report(ctx, outcome)
	}
}

// awaitKind holds a workload until its kind is served again.
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

// releaseAll makes every held workload due now, except those that rest. As all get the same time, the one that has waited longest is first.
func (d *debounce) releaseAll() {
	now := d.now()
	for _, p := range d.byKey {
		if p.held != plan.None && !rests(p.held) {
			if d.unhold(p); p.due.IsZero() {
				d.order = append(d.order, p)
			}
			p.due = now
		}
	}
	slices.SortStableFunc(d.order, byDue)
}

// wake makes a changed workload due if it rests, waits for its pods or its pace, or was rewritten after its patch was refused.
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
