package actuate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// intake compares sources with the records of the workloads that depend on them, and adds pending changes to roll for.
type intake struct {
	*term
	syncer *forcesync.Syncer
	// waiting contains the workloads to compare after their patches have ended.
	waiting keySet
}

func (i *intake) start(ctx context.Context) {
	for _, w := range i.index.All() {
		i.reconsider(ctx, w.Key())
	}
	sources := i.syncer.Templates()
	i.state.Each(events.KindOpenBao, "", func(name string, _ *events.LastChange) {
		sources = append(sources, events.Source{Kind: events.KindOpenBao, Name: name})
	})
	for _, source := range sources {
		if change, last := i.state.Change(source); last != nil {
			e := foundEvent(ctx, change, last.StoredAt(), i.now())
			i.syncer.Resume(e.context(ctx), change, e.span, e)
		}
	}
}

// advance handles the news of sources, the events that have settled, and due repetitions. It returns false if there are more news: nothing is
// dispatched before they are handled.
func (i *intake) advance(ctx context.Context) (isAll bool) {
	for key := range i.waiting {
		if !i.patcher.busy(key) {
			delete(i.waiting, key)
			i.reconsider(ctx, key)
		}
	}
	taken, isAll := i.dirty.takeNews()
	for source, n := range taken {
		i.take(ctx, source, n)
	}
	i.settle(ctx)
	for key, due := range i.notes.repetitions {
		if !i.now().Before(due) {
			delete(i.notes.repetitions, key)
			i.reconsider(ctx, key)
		}
	}
	return isAll
}

// take hands the last event of a source to the workloads and the ExternalSecrets that depend on it.
func (i *intake) take(ctx context.Context, source events.Source, n news) {
	change, last := i.state.Change(source)
	if last == nil {
		return // The last event cannot be read.
	}
	i.inventory.Look(source)
	e := &takenEvent{
		change: change, storedAt: last.StoredAt(), at: i.now(), span: change.StartProcess(context.WithoutCancel(ctx), i.options.Tracer, last.Seq),
		earlier: n.earlier,
	}
	eventCtx := e.context(ctx)
	e.finished = func() {
		i.metrics.finished(eventCtx, e.change, i.now().Sub(e.at))
		e.span.End()
	}
	e.Hold()
	defer e.release()
	dependents := i.index.Dependents(source)
	i.metrics.received(eventCtx, change)
	from := n.from(change)
	for _, w := range dependents {
		i.consider(eventCtx, e, w, from, n.since)
	}
	i.syncer.Take(eventCtx, change, e.span, e)
	i.log.DebugContext(eventCtx, "event received", "source", source.String(), "namespace", source.Namespace,
		"verb", string(change.Verb), "seq", last.Seq, "dependents", len(dependents))
}

// consider decides about a new event for a workload. From is the previous content of the source, and since is when the change arrived.
func (i *intake) consider(ctx context.Context, e *takenEvent, w *workload.Workload, from *events.Change, since time.Time) {
	key, source := w.Key(), e.change.Source
	if i.patcher.busy(key) {
		i.settling.drop(key, source)
		i.debounce.add(w, e, from, since, true) // The state of the workload after the patch is not known yet.
		return
	}
	decision := i.decide(w, e.change, plan.Memory{Since: since, From: from})
	// Keep the change of a source that is in the record: the recorded content may come back while pods have the pending one.
	last, recorded := w.Rolled[source.String()]
	isKept := recorded && !last.IsOwed()
	switch {
	case decision.Reason == plan.SourceDeleted && !isKept && i.debounce.has(key, source):
		i.leave(ctx, e, w, decision)
		i.debounce.forget(key, source)
	case decision.Reason.Action() == plan.Skip && !i.debounce.has(key, source):
		i.leave(ctx, e, w, decision)
	default:
		i.settling.drop(key, source)
		c := i.debounce.add(w, e, from, since, decision.IsNews(e.change))
		if decision.Owes() {
			c.owed = true
			i.notes.hasten(key)
		}
	}
}

// leave ends an event that needs no action, and reports it once the workload is quiet.
func (i *intake) leave(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	if !i.settling.keeps(e, w, decision) {
		i.settling.drop(w.Key(), e.change.Source)
		i.notes.conclude(ctx, e, w, decision)
	}
}

// reconsider compares a workload with all sources that it wants. Since nothing new has arrived, sources that need no roll are not reported.
func (i *intake) reconsider(ctx context.Context, key workload.Key) {
	w := i.index.Get(key)
	switch {
	case w == nil || w.OptIn.Empty():
		return
	case i.patcher.busy(key):
		i.waiting[key] = struct{}{}
		return
	}
	lacks := w.IsRecordLost()
	for source := range sets.New(slices.Concat(i.state.concerning(w), w.Owed())...) {
		lacks = i.find(ctx, w, source) || lacks
	}
	if lacks {
		i.notes.want(key)
	}
}

// find compares a workload with a source, and reports whether the record lacks something that needs no roll.
func (i *intake) find(ctx context.Context, w *workload.Workload, source events.Source) (lacks bool) {
	key := w.Key()
	change, storedAt := i.last(w, source)
	if change.Verb == "" || i.debounce.isFor(key, change) {
		return false
	}
	now := i.now()
	since := cameAt(change.Time, now)
	decision := i.decide(w, change, plan.Memory{Since: since})
	if _, waits := i.notes.repetitions[key]; waits && w.Reverts(source.String(), decision.Record) > 0 {
		return false // The repetition comes later.
	}
	if action := decision.Reason.Action(); action == plan.Skip || action == plan.Record && !isForged(decision) {
		return decision.Records
	}
	c := i.debounce.add(w, foundEvent(ctx, change, storedAt, now), nil, since, true)
	c.owed = c.owed || decision.Owes()
	return false
}

// last returns the last change of a source, even a deletion that the stream has dropped, and when it was stored. Its Verb is empty if there is none.
func (i *intake) last(w *workload.Workload, source events.Source) (events.Change, time.Time) {
	change, last := i.state.Change(source)
	switch {
	case last != nil:
		return change, last.StoredAt()
	case !w.Rolled[source.String()].OwesDeletion() || i.state.IsUnreadable(source):
		return events.Change{}, time.Time{}
	}
	change = plan.Forgotten(w, source)
	change.Time = cmp.Or(change.Time, i.now())
	return change, time.Time{}
}

// settle decides again about the events of workloads that have become quiet. If the source has a pending change by now, that one is decided instead.
func (i *intake) settle(ctx context.Context) {
	for _, u := range i.settling.take() {
		key := u.seen.Key()
		w := i.index.Get(key)
		for source, e := range u.events {
			switch {
			case i.debounce.has(key, source):
			case w == nil:
				i.notes.conclude(e.context(ctx), e, u.seen, plan.Decision{Source: source, Reason: plan.WorkloadGone})
			default:
				i.decideAgain(e.context(ctx), e, w)
			}
			e.release()
		}
	}
}

// decideAgain decides about an event that has settled, on the current state of the workload.
func (i *intake) decideAgain(ctx context.Context, e *takenEvent, w *workload.Workload) {
	now := i.now()
	decision := i.decide(w, e.change, plan.Memory{Since: now})
	if decision.Reason.Action() == plan.Skip && !i.patcher.busy(w.Key()) {
		i.notes.conclude(ctx, e, w, decision)
	} else {
		i.consider(ctx, e, w, nil, now)
	}
}
