package actuate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// dispatcher decides about the workloads that are due, starts their patches, and takes the results: see completion.go.
type dispatcher struct {
	*reporter
	decider  *decider
	kinds    workload.Kinds
	index    *inventory.Index
	debounce *debounce
	// warned says that incomparable resourceVersions were logged.
	warned bool
	// slotted is true if it is the turn of the workloads that wait for a slot.
	slotted   bool
	admission *admission
	ways      ways
	patcher   *patcher
	rollouts  *rollouts
	notes     *notes
	told      toldHolds
	// unrecorded has the kinds for which it was logged that nothing can be recorded on them.
	unrecorded map[string]bool
	tracer     trace.Tracer
}

// dispatch acts on the workloads that are due, and on those that wait for a slot while there are free ones, until no more patches may be started.
func (d *dispatcher) dispatch(ctx context.Context) {
	for !d.patcher.full() {
		d.admission.orders.wake() // What was done last may let others go.
		p := d.next()
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
			d.notes.releaseAll(ctx, p, plan.WorkloadGone)
		}
	}
}

// next returns the next workload to act on, or nil if there is none. Workloads that are due and workloads that wait for a slot take turns, so that
// neither group takes all the patch workers.
func (d *dispatcher) next() *pending {
	d.slotted = !d.slotted
	if !d.slotted {
		if p := d.debounce.pop(d.now(), d.patcher.hasRoom); p != nil {
			return p
		}
	}
	hasSlot := func(namespace string) bool {
		return d.patcher.hasRoom(namespace) && d.admission.slots.hasRoom(namespace)
	}
	if p := d.debounce.popSlot(hasSlot); p != nil {
		return p
	}
	return d.debounce.pop(d.now(), d.patcher.hasRoom)
}

// act decides about the changes of a workload, and then patches it, holds it, or leaves it as it is.
func (d *dispatcher) act(ctx context.Context, p *pending, w *workload.Workload) {
	v := d.decider.verdict(p, w)
	if v.contradicted && !d.warned {
		d.warned = true
		d.log.WarnContext(ctx, "resourceVersions of workloads and sources are not comparable; workloads may be rolled for changes that they have",
			"workload", w.ID.String(), "namespace", w.ID.Namespace)
	}
	why := v.waits
	p.rollsSince = v.since
	if v.rolls {
		why = d.obstacle(p, w, v.doing)
	}
	if why.begins {
		d.notes.beginPause(ctx, w, p)
	}
	p.rest(d.isChosen(why.reason), d.now())
	p.paced = time.Time{}
	if v.rolls && why.reason == plan.None {
		p.paced = d.admission.pace.end(p, w)
	}
	isKnown := !p.paced.IsZero() || why.reason != plan.None && p.isReported(why.reason)
	if isKnown && len(v.leaving) == 0 {
		// A workload that waits is decided again whenever it is woken. Nothing has changed, so there is nothing to report.
		d.keep(p, why)
		return
	}
	span := startPlan(ctx, d.tracer, p, w)
	defer span.End()
	for _, decision := range slices.Concat(v.leaving, v.doing) {
		addDecision(span, decision)
	}
	d.leave(ctx, p, w, v.leaving)
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

// obstacle returns why a workload that is to be rolled must wait, and chooses between a rollout and a reload in place.
func (d *dispatcher) obstacle(p *pending, w *workload.Workload, doing []plan.Decision) obstacle {
	p.way = d.ways.choose(p, w, doing)
	switch why := d.admission.obstacle(w, doing, p.first); {
	case why.reason.Waiting() == plan.ForSlot:
		return why
	case why.reason != plan.None:
		p.filesSince = time.Time{}
		return why
	case d.admission.slots.needs(w) && d.debounce.slots.Has(p):
		return obstacle{reason: p.slot} // It was woken for another reason, and its turn for a slot has not come yet.
	}
	return d.notReloadable(p, w)
}

// notReloadable returns why the pods of a workload that reloads in place cannot be asked to reload yet.
func (d *dispatcher) notReloadable(p *pending, w *workload.Workload) obstacle {
	switch now := d.now(); {
	case !p.way.inPlace:
	case now.Before(p.way.refreshed):
		if p.filesSince.IsZero() {
			p.filesSince = now
		}
		return obstacle{reason: plan.FilesPending, end: p.way.refreshed}
	case !d.patcher.reloaders.MayTake(w.ID.Namespace):
		return obstacle{reason: plan.FilesPending, end: now.Add(reloadPause)}
	}
	return obstacle{}
}

// leave releases the changes that need no patch.
func (d *dispatcher) leave(ctx context.Context, p *pending, w *workload.Workload, leaving []plan.Decision) {
	for _, decision := range leaving {
		c := p.changes[decision.Source]
		delete(p.changes, decision.Source)
		d.notes.release(ctx, w, c, decision)
	}
}

// start sends the patch that carries out the decisions.
func (d *dispatcher) start(ctx context.Context, span trace.Span, p *pending, w *workload.Workload, doing []plan.Decision) {
	k, _ := d.kinds.Named(w.ID.Kind) // The index has workloads of no other kind.
	p.decided = d.now()
	r, err := newTask(k, w, doing, p)
	r.span = span
	if err != nil {
		span.SetStatus(codes.Error, "no patch")
		d.denied(ctx, r, fmt.Errorf("making a patch: %w", err))
		return
	}
	d.patcher.start(ctx, r)
}
