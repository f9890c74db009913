package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// loop does the work of the leader, one step at a time. The state of its parts belongs to the goroutine of run. Other goroutines send patches and
// outcomes, and return results over channels. The parts do not know the loop, which passes the result of one to the next.
type loop struct {
	*term
	intake     *intake
	dispatcher *dispatcher
	syncer     *forcesync.Syncer
}

func (l *loop) run(ctx context.Context) {
	defer l.drain(ctx)
	l.rollouts.readStarts(ctx)
	if !l.state.wait(ctx) || !l.rollouts.resume(ctx) {
		return
	}
	for _, w := range l.index.All() {
		l.notes.review(w.Key())
		l.admission.seeReloader(w, time.Time{})
	}
	if l.intake.start(ctx); len(l.debounce.byKey) > 0 {
		l.rollouts.readHolds(ctx, l.dispatcher.told)
	}
	l.snapshots.Store(newSnapshot(l.term))
	l.work(ctx)
}

func (l *loop) work(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	overdue := time.NewTicker(overdueCheck)
	defer overdue.Stop()
	for {
		l.options.Progress.Idle()
		step := l.await(ctx, timer.C, overdue.C)
		if step == nil {
			return
		}
		l.options.Progress.Busy()
		step(ctx)
		l.advance(ctx)
		l.wake(timer)
	}
}

// await returns the next step, or nil when the context is done. The caller runs the step, so that the liveness probe measures its duration.
func (l *loop) await(ctx context.Context, due, overdue <-chan time.Time) func(context.Context) {
	select {
	case <-ctx.Done():
		return nil
	case l.outbox.flush(!l.patcher.idle()) <- l.outbox.waiting:
		return func(context.Context) { l.outbox.waiting = nil }
	case result := <-l.patcher.results:
		return func(ctx context.Context) { l.dispatcher.finish(ctx, result) }
	case <-l.dirty.signal:
		return l.review
	case <-l.syncer.Signal():
		return l.syncer.Collect
	case <-overdue:
		return l.reviewOverdue
	case <-due:
		return func(context.Context) {}
	}
}

// advance starts whatever can be started now. While too many outcomes wait to be published, it starts nothing.
func (l *loop) advance(ctx context.Context) {
	if l.outbox.full() {
		return
	}
	if !l.intake.advance(ctx) {
		l.dirty.alert() // Workloads that wait for others must not go before all news are handled.
		return
	}
	l.dispatcher.dispatch(ctx)
	l.notes.advance(ctx)
	l.syncer.Advance(ctx)
}

// reviewOverdue updates everything that depends on the time. The rollouts come last because their review releases held workloads.
func (l *loop) reviewOverdue(ctx context.Context) {
	l.snapshots.Store(newSnapshot(l.term))
	l.admission.forget()
	l.notes.look(ctx)
	l.rollouts.reviewOverdue(ctx)
}

func (l *loop) review(ctx context.Context) {
	changed, relinked := l.dirty.take()
	for key := range changed {
		l.orders.review(key)
		l.admission.reviewReloader(key)
		l.rollouts.review(ctx, key)
		l.debounce.wake(key)
		l.notes.review(key)
	}
	for key := range relinked {
		l.intake.reconsider(ctx, key)
		l.notes.want(key)
	}
}

// wake sets the timer to the next due time.
func (l *loop) wake(timer *time.Timer) {
	next, isAny := time.Time{}, false
	sooner := func(due time.Time, ok bool) {
		if ok && (!isAny || due.Before(next)) {
			next, isAny = due, true
		}
	}
	now := l.now()
	if !l.outbox.full() {
		if !l.patcher.full() {
			sooner(l.debounce.next())
		}
		sooner(now.Add(wakePause), len(l.orders.moved) > 0)
		sooner(l.settling.next())
		sooner(l.syncer.Next())
		sooner(l.notes.nextRecord())
		sooner(l.notes.nextRepetition())
	}
	sooner(l.outbox.next())
	if !isAny {
		timer.Stop()
		return
	}
	timer.Reset(max(0, next.Sub(now)))
}

// drain waits for the patches in flight, and publishes their outcomes.
func (l *loop) drain(ctx context.Context) {
	l.dirty.end()
	ctx = context.WithoutCancel(ctx)
	for result := range l.patcher.drain() {
		l.dispatcher.finish(ctx, result)
	}
	l.syncer.Stop(ctx)
	l.outbox.close(ctx)
	l.debounce.abandon()
	l.settling.abandon()
}

func newLoop(s *surroundings) *loop {
	s.dirty.begin()
	t := &term{
		surroundings: s, now: s.options.Now, index: s.inventory.Index, namespaces: s.inventory.Namespaces, kube: newKubeEvents(s),
		outcomes: outcomes{cluster: s.options.Cluster, now: s.options.Now}, denials: make(denials),
		peers: &failedPeers{keys: make(map[workload.Key]*failure), replaced: make(map[workload.Key]map[string]workload.RolledFor)},
	}
	t.outbox = &outbox{term: t, batches: make(chan []events.Outcome)}
	t.debounce, t.settling, t.patcher, t.orders = newDebounce(t), newSettling(t), newPatcher(t), newOrders(t)
	t.admission, t.rollouts, t.notes = newAdmission(t), newRollouts(t), newNotes(t)
	o := s.options
	syncer := forcesync.New(forcesync.Options{
		Cluster: o.Cluster, DryRun: o.DryRun, MaxSyncs: maxSyncs, Alone: len(o.Namespaces) == 1,
		Client: o.Dynamic, Log: s.log, Tracer: o.Tracer, Now: o.Now,
	}, t, s.syncIndex)
	return &loop{
		term: t, syncer: syncer, intake: &intake{term: t, syncer: syncer, waiting: make(keySet)},
		dispatcher: &dispatcher{term: t, told: make(toldHolds), unrecorded: make(map[string]bool)},
	}
}

// overdueCheck is the interval between checks for overdue rollouts.
const overdueCheck = 5 * time.Second

// term contains the parts of a loop and the state that they share. The parts embed it; each changes only its own state.
type term struct {
	*surroundings
	now        func() time.Time
	index      *inventory.Index
	namespaces *inventory.Namespaces
	kube       *kubeEvents
	outcomes   outcomes
	denials    denials
	peers      *failedPeers

	outbox    *outbox
	debounce  *debounce
	settling  *settling
	patcher   *patcher
	orders    *orders
	admission *admission
	rollouts  *rollouts
	notes     *notes
}
