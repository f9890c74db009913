package actuate

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/workload"
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
	syncer   *forcesync.Syncer

	deliveries chan *events.Delivery
	results    chan patchResult
	touched    *touched
	patching   sync.WaitGroup

	queue    *settleQueue
	inFlight map[workload.Key]*roll
	rollouts map[workload.Key]*rollout
	// failed are the workloads whose last rollout failed, and still stands so.
	failed map[workload.Key]struct{}
	// reported is the revision of each workload that an outcome was published of.
	reported map[workload.Key]string
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
	return &engine{
		options: a.options, bus: a.bus, log: a.log, index: a.index, metrics: a.metrics, reporter: reporter,
		patcher:    &patcher{options: a.options, index: a.index},
		deliveries: make(chan *events.Delivery, deliveryQueue),
		results:    make(chan patchResult),
		touched:    a.touched,
		queue:      newSettleQueue(),
		inFlight:   make(map[workload.Key]*roll),
		rollouts:   make(map[workload.Key]*rollout),
		failed:     make(map[workload.Key]struct{}),
		reported:   make(map[workload.Key]string),
		known:      make(map[events.Source]events.Change),
		open:       make(map[*ticket]struct{}),
		standing:   &a.standing,
		syncer:     forcesync.New(syncHost(a.options, a.metrics, reporter), a.syncIndex),
	}
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
		deliveries := e.deliveries
		if e.reporter.full() {
			deliveries = nil
		}
		select {
		case <-ctx.Done():
			return
		case e.reporter.outlet(e.options.Now(), len(e.inFlight) > 0) <- e.reporter.waiting:
			e.reporter.taken()
		case reports := <-e.reporter.published:
			e.options.Progress.Busy()
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
		case <-e.syncer.Signal():
			e.options.Progress.Busy()
			e.syncer.Collect(ctx)
		case <-overdue.C:
			e.reviewOverdue(ctx)
			e.stand()
		case <-timer.C:
		}
		if !e.reporter.full() {
			e.dispatch(ctx)
			e.syncer.Advance(ctx)
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
	if due, ok := e.syncer.Next(); ok && !e.reporter.full() {
		if wait := max(0, due.Sub(now)); next < 0 || wait < next {
			next = wait
		}
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
	e.syncer.Stop()
	e.tellAll(ctx)
	for t := range e.open {
		e.settle(ctx, t, context.Canceled)
	}
}

// giveBack gives back what was delivered and never taken. Call it when nothing is delivered any more.
func (e *engine) giveBack(ctx context.Context) {
	for {
		select {
		case delivery := <-e.deliveries:
			delivery.Done(ctx, context.Canceled)
		default:
			return
		}
	}
}
