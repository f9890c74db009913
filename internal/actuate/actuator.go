package actuate

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nuid"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
)

// Actuator rolls the workloads that depend on what changed. Make one with New.
type Actuator struct {
	options    Options
	bus        *events.Bus
	log        *slog.Logger
	index      *index
	reflectors *reflectors
	metrics    *metrics
	touched    *touched
	syncIndex  *forcesync.Index
	// syncWatch is nil where ExternalSecrets are not looked at.
	syncWatch *forcesync.Watch
	leading   atomic.Bool
	standing  atomic.Pointer[standing]
}

// New checks the options.
func New(options Options) (*Actuator, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("asking for the name of the host: %w", err)
		}
		options.Identity = host + "_" + nuid.Next()
	}
	a := &Actuator{options: options, log: options.Logger.With("component", "actuator"), touched: newTouched(), syncIndex: forcesync.NewIndex()}
	a.index = newIndex(options.RollAll, a.touched.add)
	a.reflectors = newReflectors(options, a.index, a.log)
	if options.ForceSync {
		a.syncWatch = syncWatch(options, a.syncIndex, a.reflectors)
	}
	var err error
	if a.metrics, err = newMetrics(options); err != nil {
		return nil, fmt.Errorf("making metrics: %w", err)
	}
	if err := a.observe(); err != nil {
		return nil, err
	}
	return a, nil
}

// Ready is nil when the actuator knows the workloads, so that it acts or can take over at once; else it says what is
// missing.
func (a *Actuator) Ready() error { return a.reflectors.ready() }

// Leading tells whether this actuator is the one that acts.
func (a *Actuator) Leading() bool { return a.leading.Load() }

// Run acts on the events of the bus, whenever this actuator is the leader, until the context is done. Patches that are under
// way then are finished first. It returns nil when the context ended it. It may be called once.
func (a *Actuator) Run(ctx context.Context, bus *events.Bus) error {
	a.bus = bus
	var running sync.WaitGroup
	defer running.Wait()
	reflecting, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { a.reflectors.run(reflecting) })
	if a.syncWatch != nil {
		running.Go(func() { a.syncWatch.Run(reflecting) })
	}
	if !a.reflectors.wait(ctx) {
		return nil
	}
	a.log.InfoContext(ctx, "every workload is known", "workloads", len(a.index.all()))
	if !a.options.LeaderElect {
		return a.lead(ctx)
	}
	return a.elect(ctx)
}

// lead consumes and acts until the context is done.
func (a *Actuator) lead(ctx context.Context) error {
	a.leading.Store(true)
	defer a.leading.Store(false)
	defer a.standing.Store(nil)
	kube := newKubeEvents(a.options, a.log, a.metrics.dropEvent)
	reporter := newReporter(a, kube)
	e := newEngine(a, reporter)

	var telling, consuming sync.WaitGroup
	tellCtx, stopTelling := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTelling()
	leading, stop := context.WithCancel(ctx)
	defer stop()
	telling.Go(func() { kube.run(tellCtx, leading) })
	var reporting sync.WaitGroup
	reporting.Go(func() { reporter.run(tellCtx) })

	var failure error
	consuming.Go(func() {
		defer stop()
		failure = a.bus.Consume(leading, a.consumeOptions(), func(ctx context.Context, d *events.Delivery) {
			select {
			case e.deliveries <- d:
			case <-ctx.Done():
				d.Done(ctx, context.Canceled)
			}
		})
	})
	if beside := a.options.WhileLeading; beside != nil {
		consuming.Go(func() { beside(leading, a.bus) })
	}
	e.run(leading)
	consuming.Wait()
	e.giveBack(ctx)

	// What has happened is told before the program ends, for as long as that may take.
	reporter.close(ctx)
	last := time.AfterFunc(reportTimeout, stopTelling)
	reporting.Wait()
	close(kube.queue)
	telling.Wait()
	last.Stop()
	if failure != nil && ctx.Err() == nil {
		return fmt.Errorf("consuming events: %w", failure)
	}
	return nil
}

func (a *Actuator) consumeOptions() events.ConsumeOptions {
	return events.ConsumeOptions{
		Durable: a.options.durable(), StoresFrom: a.options.StoresFrom, MaxAckPending: maxOpenEvents, AckWait: takeoverWait, OnReject: a.metrics.reject,
	}
}

// durable is the name of the consumer of CHANGES.
func (o Options) durable() string {
	if o.DryRun {
		// What is only looked at stays to be done.
		return "actuator-" + o.Cluster + "-dry-run"
	}
	return "actuator-" + o.Cluster
}

// origins are the clusters whose changes are acted on.
func (o Options) origins() events.Origins {
	return events.Origins{Cluster: o.Cluster, StoresFrom: o.StoresFrom}
}

// takeoverWait is how long the events of an actuator that died wait for the next one.
const takeoverWait = 10 * time.Second

// maxOpenEvents is how many events may be under way. A rollout that waits for its turn keeps its event open, and must not
// keep the others from coming.
const maxOpenEvents = 20000
