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
	policy    plan.Policy
	index     *inventory.Index
	baselines baselines
	inFlight  *inFlightEvents
	debounce  *debounce
	patcher   *patcher
	concluder *concluder
	syncer    *forcesync.Syncer
	// arrived is called for each event that concerns a workload.
	arrived func(workload.Key, events.Source)
	metrics *metrics
	log     *slog.Logger
	now     func() time.Time
}

// take handles a delivered event: it adds the event to the debounce of the workloads that it may change, and concludes it for the others.
func (i *intake) take(ctx context.Context, delivery *events.Delivery) {
	change := delivery.Change
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
		i.arrived(w.Key(), change.Source)
	}
	i.syncer.Take(eventCtx, change, e.span, heldEvent{e, i.inFlight})
	i.log.DebugContext(eventCtx, "event received", "source", change.Source.String(), "namespace", change.Source.Namespace,
		"verb", string(change.Verb), "seq", delivery.Seq, "dependents", len(dependents), "open", e.open)
	if e.open == 0 {
		i.inFlight.finish(ctx, e, nil)
	}
}

// resume asks about the sources that workloads came to want, because an earlier leader may not have known that.
func (i *intake) resume(ask func(question)) {
	for _, w := range i.index.All() {
		for _, source := range w.Linked() {
			if _, recorded := w.Rolled[source.String()]; !recorded {
				ask(question{workload: w.Key(), source: source, why: recallLinked})
			}
		}
	}
}

// recall passes the last event of a source to the one workload for which it was read again.
func (i *intake) recall(ctx context.Context, recalled answer) {
	key, delivery := recalled.workload, recalled.delivery
	w := i.index.Get(key)
	if w != nil && delivery == nil {
		delivery = i.forgotten(w, recalled.source)
	}
	if w == nil || delivery == nil || !i.isNeeded(w, delivery, recalled.why) {
		return
	}
	e := i.inFlight.recall(ctx, delivery)
	i.consider(e.context(ctx), e, w, nil)
	if e.open == 0 {
		i.inFlight.finish(ctx, e, nil)
	}
}

// isNeeded reports whether the workload needs an event that was read again for it.
func (i *intake) isNeeded(w *workload.Workload, delivery *events.Delivery, why recallReason) bool {
	key := w.Key()
	// A pending change, or a patch under way, may already be for this event or a later one.
	if i.debounce.byKey[key].hasUpTo(delivery) || i.patcher.patching(key).covers(delivery) {
		return false
	}
	switch why {
	case recallLinked:
		return i.isMissed(w, delivery.Change)
	case recallReturned:
		return i.isMissedByKind(w, delivery.Change)
	default:
		return true // A reverted roll is repeated, and an owed one is decided, whatever the event is.
	}
}

// forgotten returns the event of a deletion that a workload waits to be rolled for, and that the stream has dropped meanwhile. It returns nil if
// there was none.
func (i *intake) forgotten(w *workload.Workload, source events.Source) *events.Delivery {
	owed := w.Rolled[source.String()]
	if !owed.OwesDeletion() || !i.policy.Delete {
		return nil
	}
	return &events.Delivery{Received: i.now(), Deliveries: 1, Change: events.Change{
		Source: source, Verb: events.VerbDeleted, UID: owed.UID, ResourceVersion: owed.Version, Fingerprint: owed.Fingerprint,
		Time: cmp.Or(w.Patched, i.now()), // It was noted then, or earlier: see owing.
	}}
}

// isMissed reports whether the event of a source that a workload has come to want has an effect on the workload, and may have been handled before
// the index knew that the workload wants the source.
func (i *intake) isMissed(w *workload.Workload, change events.Change) bool {
	return plan.IsLaterThanLink(w, change) && i.affects(w, change)
}

// isMissedByKind reports whether the event of a source has an effect on a workload, and may have been handled while the workload's kind was not
// served. A workload without a record of the source may be new: what happened before it wanted the source does not roll it.
func (i *intake) isMissedByKind(w *workload.Workload, change events.Change) bool {
	_, recorded := w.Rolled[change.Source.String()]
	return (recorded || plan.IsLaterThanWish(w, change)) && i.affects(w, change)
}

// affects reports whether an event would have an effect on a workload with no pending changes.
func (i *intake) affects(w *workload.Workload, change events.Change) bool {
	return i.policy.Decide(w, change, plan.Past{}).Reason.Action() != plan.Skip
}

// consider handles an event for one workload. From is the baseline of its change; the context is the event's.
func (i *intake) consider(ctx context.Context, e *inFlightEvent, w *workload.Workload, from *events.Change) {
	key, change := w.Key(), e.delivery.Change
	if i.debounce.byKey[key].supersedes(e.delivery) || i.patcher.patching(key).supersedes(e.delivery) {
		return // A late event must not replace a later one.
	}
	// A source in the record is kept: it may come back with the recorded content while pods already have the pending content.
	if _, recorded := w.Rolled[change.Source.String()]; !recorded && i.debounce.canForget(key, change.Source) && !i.patcher.busy(key) {
		if decision := i.policy.Decide(w, change, plan.Past{From: from}); decision.Reason == plan.SourceDeleted {
			i.concluder.conclude(ctx, e, w, decision)
			i.inFlight.replace(ctx, i.debounce.forget(key, e))
			return
		}
	}
	// While a patch is under way, the state of the workload after it is not known yet.
	if !i.debounce.has(key, change.Source) && !i.patcher.busy(key) {
		if decision := i.policy.Decide(w, change, plan.Past{From: from}); decision.Reason.Action() == plan.Skip {
			i.concluder.conclude(ctx, e, w, decision)
			return
		}
	}
	i.inFlight.replace(ctx, i.debounce.add(w, e, from, i.now()))
}
