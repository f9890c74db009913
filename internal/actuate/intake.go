package actuate

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// intake passes events to the workloads and the ExternalSecrets that depend on their sources.
type intake struct {
	decider   *decider
	index     *inventory.Index
	state     *state
	baselines baselines
	inFlight  *inFlightEvents
	debounce  *debounce
	patcher   *patcher
	concluder *concluder
	syncer    *forcesync.Syncer
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time
}

// take handles a delivered event: it adds the event to the debounce of the workloads that it may change, and concludes it for the others.
func (i *intake) take(ctx context.Context, delivery *events.Delivery) {
	change := delivery.Change
	i.state.take(delivery)
	e := i.inFlight.deliver(ctx, delivery)
	eventCtx := e.context(ctx)
	dependents := i.index.Dependents(change.Source)
	i.metrics.received(eventCtx, delivery, dependents, i.now())
	if i.baselines.isLate(delivery) {
		// The later event covers everything that this one is about.
		i.log.DebugContext(eventCtx, "event came late", "source", change.Source.String(), "namespace", change.Source.Namespace, "seq", delivery.Seq)
		i.inFlight.finish(ctx, e, nil)
		return
	}
	from := i.baselines.next(delivery, len(dependents) > 0)
	for _, w := range dependents {
		i.consider(eventCtx, e, w, from)
	}
	i.syncer.Take(eventCtx, change, e.span, heldEvent{e, i.inFlight})
	i.log.DebugContext(eventCtx, "event received", "source", change.Source.String(), "namespace", change.Source.Namespace,
		"verb", string(change.Verb), "seq", delivery.Seq, "dependents", len(dependents), "open", e.open)
	if e.open == 0 {
		i.inFlight.finish(ctx, e, nil)
	}
}

// resume has workloads get what an earlier leader may not have known that they want, and what it has noted that they wait for.
func (i *intake) resume(ctx context.Context) {
	for _, w := range i.index.All() {
		if w.IsRelinked() {
			i.relinked(ctx, w.Key())
		}
		i.recallOwed(ctx, w)
	}
}

// relinked has a workload get the changes of sources that it has come to want. They may have been taken before anybody knew that.
func (i *intake) relinked(ctx context.Context, key workload.Key) {
	w := i.index.Get(key)
	if w == nil {
		return
	}
	for _, source := range i.state.concerning(w) {
		if _, linked := w.Link(source); linked {
			i.recallFor(ctx, key, source)
		}
	}
}

// returned has a workload whose kind is served again get what it has missed meanwhile. A workload that was known got its events. But an actuator that
// began without the kind, this one or that of an earlier leader, may have taken events without a workload to pass them to.
func (i *intake) returned(ctx context.Context, key workload.Key) {
	w := i.index.Get(key)
	if w == nil {
		return
	}
	i.state.meet(w)
	for _, source := range i.state.concerning(w) {
		i.recallFor(ctx, key, source)
	}
	i.recallOwed(ctx, w)
}

// recallOwed recalls what is noted on a workload.
func (i *intake) recallOwed(ctx context.Context, w *workload.Workload) {
	for _, source := range w.Owed() {
		last := i.state.Recall(source, i.now())
		if last == nil && !i.state.IsUnreadable(source) {
			last = i.forgotten(w, source)
		}
		if last != nil {
			i.recall(ctx, w, last)
		}
	}
}

// recallFor recalls the last change of a source for one workload.
func (i *intake) recallFor(ctx context.Context, key workload.Key, source events.Source) {
	if w, last := i.index.Get(key), i.state.Recall(source, i.now()); w != nil && last != nil {
		i.recall(ctx, w, last)
	}
}

// recall gathers the last change of a source for one workload as if it had just been delivered, unless that would have no effect.
func (i *intake) recall(ctx context.Context, w *workload.Workload, last *events.Delivery) {
	key := w.Key()
	if i.debounce.byKey[key].hasUpTo(last) || i.patcher.patching(key).covers(last) {
		return // A pending change, or a patch under way, may already be for this event or a later one.
	}
	decision, isKnown := i.decide(w, last, nil)
	if isKnown && decision.Reason.Action() == plan.Skip {
		return
	}
	i.gather(ctx, i.inFlight.recall(ctx, last), w, nil, decision)
}

// decide returns what a change means to a workload. It returns false while a patch is under way: the state of the workload after it is not known yet.
func (i *intake) decide(w *workload.Workload, delivery *events.Delivery, from *events.Change) (decision plan.Decision, isKnown bool) {
	if i.patcher.busy(w.Key()) {
		return plan.Decision{}, false
	}
	return i.decider.decideFor(w, delivery, from), true
}

// gather adds a change to the debounce of a workload.
func (i *intake) gather(ctx context.Context, e *inFlightEvent, w *workload.Workload, from *events.Change, decision plan.Decision) {
	i.inFlight.replace(ctx, i.debounce.add(w, e, from, i.now()))
	if decision.Owes() {
		i.debounce.byKey[w.Key()].changes[e.delivery.Change.Source].owed = true
	}
}

// forgotten returns the event of a deletion that a workload waits to be rolled for, and that the stream has dropped meanwhile. It returns nil if
// there was none.
func (i *intake) forgotten(w *workload.Workload, source events.Source) *events.Delivery {
	owed := w.Rolled[source.String()]
	if !owed.OwesDeletion() || !i.decider.policy.Delete {
		return nil
	}
	return &events.Delivery{Received: i.now(), Deliveries: 1, Change: events.Change{
		Source: source, Verb: events.VerbDeleted, UID: owed.UID, ResourceVersion: owed.Version, Fingerprint: owed.Fingerprint,
		Time: cmp.Or(w.Patched, i.now()), // It was noted then, or earlier: see owing.
	}}
}

// consider handles an event for one workload. From is the baseline of its change; the context is the event's.
func (i *intake) consider(ctx context.Context, e *inFlightEvent, w *workload.Workload, from *events.Change) {
	key, change := w.Key(), e.delivery.Change
	if i.debounce.byKey[key].supersedes(e.delivery) || i.patcher.patching(key).supersedes(e.delivery) {
		return // A late event must not replace a later one.
	}
	decision, isKnown := i.decide(w, e.delivery, from)
	// A source in the record is kept: it may come back with the recorded content while pods already have the pending content.
	last, recorded := w.Rolled[change.Source.String()]
	isKept := recorded && !last.IsOwed()
	switch {
	case isKnown && decision.Reason == plan.SourceDeleted && !isKept && i.debounce.canForget(key, change.Source):
		i.concluder.conclude(ctx, e, w, decision)
		i.inFlight.replace(ctx, i.debounce.forget(key, e))
	case isKnown && decision.Reason.Action() == plan.Skip && !i.debounce.has(key, change.Source):
		i.concluder.conclude(ctx, e, w, decision)
	default:
		i.gather(ctx, e, w, from, decision)
	}
}
