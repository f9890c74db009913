package actuate

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// take begins to deal with an event.
func (e *engine) take(ctx context.Context, delivery *events.Delivery) {
	change := delivery.Change
	t := e.newTicket(ctx, delivery)
	dependents := e.index.dependents(change.Source)
	e.metrics.received(t.ctx, change, dependents)
	from := e.baseline(change, len(dependents) > 0)
	for _, w := range dependents {
		e.consider(t, w, from)
	}
	e.syncer.Take(t.ctx, change, t.span, syncedTicket{t, e.settle})
	e.log.DebugContext(t.ctx, "an event was received", "source", change.Source.String(), "namespace", change.Source.Namespace,
		"verb", string(change.Verb), "seq", delivery.Seq, "dependents", len(dependents), "open", t.open)
	if t.open == 0 {
		e.settle(ctx, t, nil)
	}
}

// baseline gives the event of the source before this one, and remembers this one where it concerns a workload. An event
// that comes again tells nothing of what was before it, and one that rolls nothing, whatever its content is, tells nothing
// of what the pods have.
func (e *engine) baseline(change events.Change, keep bool) *events.Change {
	before, ok := e.known[change.Source]
	if !keep || change.Ignore || change.Verb == events.VerbDeleted {
		delete(e.known, change.Source)
		return nil
	}
	e.known[change.Source] = change
	if !ok || before.ID() == change.ID() {
		return nil
	}
	return &before
}

// consider takes an event to one workload: it is concluded at once where there is nothing to do, and gathered with others
// where there is.
func (e *engine) consider(t *ticket, w *workload.Workload, from *events.Change) {
	change, now := t.delivery.Change, e.options.Now()
	key := w.Key()
	var c *claim
	if p := e.queue.byKey[key]; p != nil {
		c = p.claims[change.Source]
	}
	if c == nil {
		// What a patch that is under way makes of the workload is not known until it is done.
		_, busy := e.inFlight[key]
		if decision := plan.Decide(w, change, from); !busy && decision.Reason.Action() == plan.Skip {
			e.conclude(t, w, decision)
			return
		}
		c = &claim{from: from}
	}
	p := e.queue.want(key, now)
	p.seen = w
	p.claims[change.Source] = c
	c.change = change
	c.tickets = append(c.tickets, t)
	t.open++
	if !p.isHeld() {
		settled := now.Add(e.options.Settle)
		if latest := p.first.Add(e.options.SettleMax); settled.After(latest) {
			settled = latest
		}
		e.queue.schedule(p, settled)
	}
}

// dispatch acts on the workloads that are due.
func (e *engine) dispatch(ctx context.Context) {
	for len(e.inFlight) < e.options.PatchWorkers {
		p := e.queue.pop(e.options.Now())
		if p == nil {
			return
		}
		if _, busy := e.inFlight[p.key]; busy {
			e.queue.hold(p, plan.Busy)
			continue
		}
		w := e.index.get(p.key)
		if w == nil {
			e.queue.drop(p)
			e.concludeAll(ctx, p, plan.WorkloadGone)
			e.releaseHeld()
			continue
		}
		e.act(ctx, p, w)
	}
}

// act decides what becomes of a workload and begins it.
func (e *engine) act(ctx context.Context, p *pending, w *workload.Workload) {
	var doing, leaving []plan.Decision
	rolls := false
	for _, c := range p.claims {
		decision := plan.Decide(w, c.change, c.from)
		if e.options.DryRun && decision.Reason.Action() == plan.Roll {
			decision.Reason = plan.DryRun
		}
		if e.options.DryRun || decision.Reason.Action() == plan.Skip {
			leaving = append(leaving, decision)
			continue
		}
		rolls = rolls || decision.Reason.Action() == plan.Roll
		doing = append(doing, decision)
	}
	obstacle := plan.None
	if rolls {
		obstacle = e.obstacle(w, p)
	}
	if obstacle != plan.None && obstacle == p.said && len(leaving) == 0 {
		// What waits is looked at whenever something moves. Nothing has become of it, so there is nothing to tell.
		e.queue.hold(p, obstacle)
		return
	}
	spanCtx, span := e.startPlan(ctx, p, w)
	defer span.End()
	for _, decision := range slices.Concat(leaving, doing) {
		span.AddEvent(decision.Reason.String(), trace.WithAttributes(decisionAttributes(decision)...))
	}
	for _, decision := range leaving {
		c := p.claims[decision.Source]
		delete(p.claims, decision.Source)
		e.metrics.decided(ctx, decision.Reason)
		e.release(ctx, w, c, decision)
	}
	if len(doing) == 0 {
		e.queue.drop(p)
		e.releaseHeld()
		return
	}
	if obstacle != plan.None {
		e.holdBack(spanCtx, p, w, obstacle)
		return
	}
	e.queue.drop(p)
	k, known := workload.BuiltIn().Named(w.ID.Kind)
	r, err := newRoll(k, w, doing, p.claims)
	if err != nil || !known {
		span.SetStatus(codes.Error, "no patch")
		e.concludeAll(ctx, p, plan.Unknown)
		return
	}
	r.pending, r.attempts, r.ctx = p, p.attempts, spanCtx
	e.inFlight[p.key] = r
	e.patching.Go(func() { e.results <- e.patcher.apply(spanCtx, r) })
}

// finish takes the result of a patch.
func (e *engine) finish(ctx context.Context, result patchResult) {
	r := result.roll
	p, key := r.pending, r.workload.Key()
	delete(e.inFlight, key)
	if later := e.queue.byKey[key]; later != nil && later.held == plan.Busy {
		e.queue.release(later, e.options.Now())
	}
	switch {
	case result.err == nil:
		e.metrics.patched(ctx, r, e.options.Now())
		for _, decision := range r.decisions {
			e.metrics.decided(ctx, decision.Reason)
		}
		if r.rolls {
			e.reporter.kube.tell(ctx, result.started)
			e.reporter.await(report{outcome: result.started, roll: r})
			e.untold++
			e.follow(ctx, result)
		} else {
			e.releaseAll(ctx, r)
			e.releaseHeld()
		}
	case result.denied && p.attempts+1 >= kube.MaxDenials:
		e.giveUp(ctx, r, result.err)
	default:
		e.retry(ctx, r, result.err)
	}
}

// conclude says what a decision is that needs no patch.
func (e *engine) conclude(t *ticket, w *workload.Workload, decision plan.Decision) {
	e.metrics.decided(t.ctx, decision.Reason)
	t.span.AddEvent(decision.Reason.String(), trace.WithAttributes(decisionAttributes(decision)...))
	e.say(t, w, decision)
}

// release ends a claim on a workload: the events that asked for it are one workload nearer to being done.
func (e *engine) release(ctx context.Context, w *workload.Workload, c *claim, decision plan.Decision) {
	if decision.Reason.Action() == plan.Skip || decision.Reason.Action() == plan.Record {
		e.say(c.newest(), w, decision)
	}
	for _, t := range c.tickets {
		t.open--
		if t.open == 0 {
			e.settle(ctx, t, t.err)
		}
	}
}

// releaseAll ends the claims that a patch was for.
func (e *engine) releaseAll(ctx context.Context, r *roll) {
	for _, decision := range r.decisions {
		e.release(ctx, r.workload, r.pending.claims[decision.Source], decision)
	}
}

// concludeAll ends all claims on a workload with one reason.
func (e *engine) concludeAll(ctx context.Context, p *pending, reason plan.Reason) {
	for source, c := range p.claims {
		decision := plan.Decision{Source: source, Reason: reason}
		e.metrics.decided(ctx, reason)
		c.newest().span.AddEvent(reason.String(), trace.WithAttributes(decisionAttributes(decision)...))
		e.release(ctx, p.seen, c, decision)
	}
}

// say tells people what was decided without a roll. What concerns nobody is not told.
func (e *engine) say(t *ticket, w *workload.Workload, decision plan.Decision) {
	e.log.DebugContext(t.ctx, "a workload was left as it is", "workload", w.ID.String(), "namespace", w.ID.Namespace,
		"source", decision.Source.String(), "reason", decision.Reason.String())
	if decision.Reason.Silent() {
		return
	}
	if decision.Reason == plan.AlreadyRolled {
		e.adopt(t, w, decision)
	}
	e.reporter.report(t.ctx, e.skipped(t, w, decision))
}

// settle tells the stream that an event is done with, or what else is to become of it.
func (e *engine) settle(ctx context.Context, t *ticket, err error) {
	delete(e.open, t)
	if err != nil && ctx.Err() == nil {
		t.span.SetStatus(codes.Error, err.Error())
	}
	e.metrics.settled(t.ctx, t.delivery.Change, e.options.Now().Sub(t.delivery.Received), err)
	t.delivery.Done(t.ctx, err)
	t.span.End()
}
