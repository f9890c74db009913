package actuate

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// engine decides and acts, while this actuator is the leader. All of its state belongs to the goroutine of run; patches
// are made by others, which hand their results back to it.
type engine struct {
	options  Options
	bus      *events.Bus
	log      *slog.Logger
	index    *index
	metrics  *metrics
	reporter *reporter
	patcher  *patcher
	syncer   *syncer

	deliveries chan *events.Delivery
	results    chan patchResult
	touched    *touched
	patching   sync.WaitGroup

	queue    *settleQueue
	inFlight map[workloadKey]*roll
	rollouts map[workloadKey]*rollout
	// failed are the workloads whose last rollout failed, and still stands so.
	failed map[workloadKey]struct{}
	// reported is the revision of each workload that an outcome was published of.
	reported map[workloadKey]string
	// known is the last event of each source that concerns a workload.
	known map[events.Source]events.Change
	// untold counts the rollouts that have begun and are not known to be published.
	untold int
	// open are the tickets that are not settled.
	open map[*ticket]struct{}
	// standing is where all of this is shown to the metrics.
	standing *atomic.Pointer[standing]
}

// deliveryQueue is how many delivered events wait for the engine at most. The bus waits when as many do.
const deliveryQueue = 256

func newEngine(a *Actuator, reporter *reporter) *engine {
	e := &engine{
		options: a.options, bus: a.bus, log: a.log, index: a.index, metrics: a.metrics, reporter: reporter,
		patcher:    &patcher{options: a.options, index: a.index},
		deliveries: make(chan *events.Delivery, deliveryQueue),
		results:    make(chan patchResult),
		touched:    a.touched,
		queue:      newSettleQueue(),
		inFlight:   make(map[workloadKey]*roll),
		rollouts:   make(map[workloadKey]*rollout),
		failed:     make(map[workloadKey]struct{}),
		reported:   make(map[workloadKey]string),
		known:      make(map[events.Source]events.Change),
		open:       make(map[*ticket]struct{}),
		standing:   &a.standing,
	}
	e.syncer = newSyncer(e, a.syncIndex, a.syncInbox)
	return e
}

// overdueCheck is how often rollouts are asked whether they take too long.
const overdueCheck = 5 * time.Second

// run works until the context is done. Then it finishes the patches that are under way, has what has happened published, and
// gives back to the stream every event that is not done with.
func (e *engine) run(ctx context.Context) {
	defer e.drain(ctx)
	e.resume(ctx)
	e.stand()
	e.loop(ctx)
}

// loop deals with whatever comes next, until the context is done.
func (e *engine) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	overdue := time.NewTicker(overdueCheck)
	defer overdue.Stop()
	for {
		e.options.Progress.Idle()
		deliveries, batches := e.deliveries, chan<- []report(nil)
		if e.reporter.due(e.options.Now(), len(e.inFlight) > 0) {
			batches = e.reporter.batches
		}
		if e.reporter.full() {
			deliveries = nil
		}
		select {
		case <-ctx.Done():
			return
		case batches <- e.reporter.waiting:
			e.reporter.taken()
		case reports := <-e.reporter.published:
			e.told(ctx, reports)
		case delivery := <-deliveries:
			e.options.Progress.Busy()
			e.take(ctx, delivery)
		case result := <-e.results:
			e.options.Progress.Busy()
			e.finish(ctx, result)
		case <-e.touched.signal:
			for key := range e.touched.take() {
				e.review(ctx, key)
			}
		case <-e.syncer.inbox.wake:
			e.options.Progress.Busy()
			e.syncer.work(ctx)
		case <-overdue.C:
			e.reviewOverdue(ctx)
			e.stand()
		case <-timer.C:
		}
		if !e.reporter.full() {
			e.dispatch(ctx)
			e.syncer.dispatch(ctx)
		}
		e.wake(timer)
	}
}

// wake sets the timer to when there is something to do again.
func (e *engine) wake(timer *time.Timer) {
	now, next := e.options.Now(), time.Duration(-1)
	if due, ok := e.queue.next(); ok && len(e.inFlight) < e.options.PatchWorkers && !e.reporter.full() {
		next = max(0, due.Sub(now))
	}
	if len(e.reporter.waiting) > 0 {
		if patience := e.reporter.since.Add(reportPatience).Sub(now); patience > 0 && (next < 0 || patience < next) {
			next = patience
		}
	}
	if next < 0 {
		timer.Stop()
		return
	}
	timer.Reset(next)
}

func (e *engine) drain(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	go func() {
		e.patching.Wait()
		close(e.results)
	}()
	for result := range e.results {
		e.finish(ctx, result)
	}
	e.syncer.stop()
	e.tellAll(ctx)
	for t := range e.open {
		e.settle(ctx, t, context.Canceled)
	}
}

// tellAll has everything published that is not, for as long as one try may take.
func (e *engine) tellAll(ctx context.Context) {
	timeout := time.After(reportTimeout)
	for len(e.reporter.waiting) > 0 || e.untold > 0 {
		batches := e.reporter.batches
		if len(e.reporter.waiting) == 0 {
			batches = nil
		}
		select {
		case batches <- e.reporter.waiting:
			e.reporter.taken()
		case reports := <-e.reporter.published:
			e.told(ctx, reports)
		case <-timeout:
			return
		}
	}
}

// told takes what is published: the events of the rollouts among it are one workload nearer to being done.
func (e *engine) told(ctx context.Context, reports []report) {
	for _, one := range reports {
		if one.roll != nil {
			e.untold--
			e.releaseAll(ctx, one.roll)
		}
	}
}

// giveBack gives back what was delivered and never taken. Call it when nothing is delivered any more.
func (e *engine) giveBack(ctx context.Context) {
	for {
		select {
		case delivery := <-e.deliveries:
			delivery.Settle(ctx, context.Canceled)
		default:
			return
		}
	}
}

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
	e.syncer.take(t)
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
func (e *engine) consider(t *ticket, w *workload, from *events.Change) {
	change, now := t.delivery.Change, e.options.Now()
	key := w.key()
	var c *claim
	if p := e.queue.byKey[key]; p != nil {
		c = p.claims[change.Source]
	}
	if c == nil {
		// What a patch that is under way makes of the workload is not known until it is done.
		_, busy := e.inFlight[key]
		if decision := plan(w, change, from); !busy && decision.Reason.Action() == Skip {
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
			e.queue.hold(p, ReasonBusy)
			continue
		}
		w := e.index.get(p.key)
		if w == nil {
			e.queue.drop(p)
			e.concludeAll(ctx, p, ReasonWorkloadGone)
			e.releaseHeld()
			continue
		}
		e.act(ctx, p, w)
	}
}

// act decides what becomes of a workload and begins it.
func (e *engine) act(ctx context.Context, p *pending, w *workload) {
	var doing, leaving []Decision
	rolls := false
	for _, c := range p.claims {
		decision := plan(w, c.change, c.from)
		if e.options.DryRun && decision.Reason.Action() == Roll {
			decision.Reason = ReasonDryRun
		}
		if e.options.DryRun || decision.Reason.Action() == Skip {
			leaving = append(leaving, decision)
			continue
		}
		rolls = rolls || decision.Reason.Action() == Roll
		doing = append(doing, decision)
	}
	obstacle := ReasonUnknown
	if rolls {
		obstacle = e.obstacle(w, p)
	}
	if obstacle != ReasonUnknown && obstacle == p.said && len(leaving) == 0 {
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
	if obstacle != ReasonUnknown {
		e.holdBack(spanCtx, p, w, obstacle)
		return
	}
	e.queue.drop(p)
	k, known := kindNamed(w.id.Kind)
	r, err := newRoll(k, w, doing, p.claims)
	if err != nil || !known {
		span.SetStatus(codes.Error, "no patch")
		e.concludeAll(ctx, p, ReasonUnknown)
		return
	}
	r.pending, r.attempts, r.ctx = p, p.attempts, spanCtx
	e.inFlight[p.key] = r
	e.patching.Go(func() { e.results <- e.patcher.apply(spanCtx, r) })
}

// finish takes the result of a patch.
func (e *engine) finish(ctx context.Context, result patchResult) {
	r := result.roll
	p, key := r.pending, r.workload.key()
	delete(e.inFlight, key)
	if later := e.queue.byKey[key]; later != nil && later.held == ReasonBusy {
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
	case result.denied && p.attempts+1 >= maxDenials:
		e.giveUp(ctx, r, result.err)
	default:
		e.retry(ctx, r, result.err)
	}
}

// conclude says what a decision is that needs no patch.
func (e *engine) conclude(t *ticket, w *workload, decision Decision) {
	e.metrics.decided(t.ctx, decision.Reason)
	t.span.AddEvent(decision.Reason.String(), trace.WithAttributes(decisionAttributes(decision)...))
	e.say(t, w, decision)
}

// release ends a claim on a workload: the events that asked for it are one workload nearer to being done.
func (e *engine) release(ctx context.Context, w *workload, c *claim, decision Decision) {
	if decision.Reason.Action() == Skip || decision.Reason.Action() == Record {
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
func (e *engine) concludeAll(ctx context.Context, p *pending, reason Reason) {
	for source, c := range p.claims {
		decision := Decision{Source: source, Reason: reason}
		e.metrics.decided(ctx, reason)
		c.newest().span.AddEvent(reason.String(), trace.WithAttributes(decisionAttributes(decision)...))
		e.release(ctx, p.seen, c, decision)
	}
}

// say tells people what was decided without a roll. What concerns nobody is not told.
func (e *engine) say(t *ticket, w *workload, decision Decision) {
	e.log.DebugContext(t.ctx, "a workload was left as it is", "workload", w.id.String(), "namespace", w.id.Namespace,
		"source", decision.Source.String(), "reason", decision.Reason.String())
	if verdicts[decision.Reason].telling == quietly {
		return
	}
	if decision.Reason == ReasonAlreadyRolled {
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
	t.delivery.Settle(t.ctx, err)
	t.span.End()
}
