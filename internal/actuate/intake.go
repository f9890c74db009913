package actuate

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// intake takes events to the workloads, and the ExternalSecrets, that depend on their sources.
type intake struct {
	policy    plan.Policy
	index     *index
	baselines baselines
	inFlight  *inFlightEvents
	gathering *debounce
	patcher   *patcher
	concluder *concluder
	syncer    *forcesync.Syncer
	// arrived is called for each event that concerns a workload.
	arrived func(workload.Key, events.Source)
	metrics *metrics
	log     *slog.Logger
	now     func() time.Time
}

// take handles a delivered event: it is gathered for the workloads that it may change, and concluded for the others.
func (i *intake) take(ctx context.Context, delivery *events.Delivery) {
	change := delivery.Change
	e := i.inFlight.deliver(ctx, delivery)
	eventCtx := e.context(ctx)
	dependents := i.index.dependents(change.Source)
	i.metrics.received(eventCtx, delivery, dependents, i.now())
	if i.baselines.isLate(delivery) {
		// What the later event says is true of all that this one concerns.
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

// resume asks about the sources that workloads came to want while an earlier leader may not have known of it.
func (i *intake) resume(ask func(question)) {
	for _, w := range i.index.all() {
		for _, source := range w.Linked() {
			if _, recorded := w.Rolled[source.String()]; !recorded {
				ask(question{workload: w.Key(), source: source, why: recallLinked})
			}
		}
	}
}

// recall takes the last event of a source to the one workload that it was read again for.
func (i *intake) recall(ctx context.Context, recalled answer) {
	key, delivery := recalled.workload, recalled.delivery
	w := i.index.get(key)
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

// isNeeded reports whether an event that was read again for a workload is to be considered.
func (i *intake) isNeeded(w *workload.Workload, delivery *events.Delivery, why recallReason) bool {
	key := w.Key()
	// A pending change, or a patch under way, may be for this event or a later one. While the kind of the workload was not served, it got none.
	if i.gathering.byKey[key].hasUpTo(delivery) || i.patcher.patching(key).covers(delivery) {
		return false
	}
	switch why {
	case recallLinked:
		return i.isMissed(w, delivery.Change)
	case recallReturned:
		return i.isMissedByKind(w, delivery.Change)
	default:
		return true // What was reverted is repeated, and what is owed is decided, whatever the event is.
	}
}

// forgotten returns the event of a deletion that a workload waits to be rolled for, and that the stream has dropped meanwhile. Nil: there was none.
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

// isMissed reports whether the event of a source that a workload has come to want may have been taken before the index knew of that, and does
// something to the workload.
func (i *intake) isMissed(w *workload.Workload, change events.Change) bool {
	return plan.IsLaterThanLink(w, change) && i.affects(w, change)
}

// isMissedByKind reports whether the event of a source may have been taken while the kind of a workload was not served, and does something to it. A
// workload without a record of the source may be seen for the first time: what came before it wanted the source rolls nothing.
func (i *intake) isMissedByKind(w *workload.Workload, change events.Change) bool {
	_, recorded := w.Rolled[change.Source.String()]
	return (recorded || plan.IsLaterThanWish(w, change)) && i.affects(w, change)
}

// affects reports whether an event does something to a workload, were there nothing pending.
func (i *intake) affects(w *workload.Workload, change events.Change) bool {
	return i.policy.Decide(w, change, plan.Past{}).Reason.Action() != plan.Skip
}

// consider takes an event to one workload. From is the baseline of its change; the context is the event's.
func (i *intake) consider(ctx context.Context, e *inFlightEvent, w *workload.Workload, from *events.Change) {
	key, change := w.Key(), e.delivery.Change
	if i.gathering.byKey[key].supersedes(e.delivery) || i.patcher.patching(key).supersedes(e.delivery) {
		return // An event that comes late must not take the place of a later one.
	}
	// What the record names may come back with the content of the record, while pods have that which was pending.
	if _, recorded := w.Rolled[change.Source.String()]; !recorded && i.gathering.canForget(key, change.Source) && !i.patcher.busy(key) {
		if decision := i.policy.Decide(w, change, plan.Past{From: from}); decision.Reason == plan.SourceDeleted {
			i.concluder.conclude(ctx, e, w, decision)
			i.inFlight.replace(ctx, i.gathering.forget(key, e))
			return
		}
	}
	// What a patch under way makes of the workload is known only when it is finished.
	if !i.gathering.has(key, change.Source) && !i.patcher.busy(key) {
		if decision := i.policy.Decide(w, change, plan.Past{From: from}); decision.Reason.Action() == plan.Skip {
			i.concluder.conclude(ctx, e, w, decision)
			return
		}
	}
	i.inFlight.replace(ctx, i.gathering.add(w, e, from, i.now()))
}
