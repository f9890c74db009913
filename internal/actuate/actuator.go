package actuate

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nuid"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/forcesync"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// Actuator rolls workloads when their sources change. Make one with New.
type Actuator struct {
	surroundings

	// syncWatch is nil without Options.ForceSync.
	syncWatch *forcesync.Watch
	leading   atomic.Bool
	// unconfined contains the problems of the policies that confine this account. It is nil until the first check has succeeded.
	unconfined atomic.Pointer[[]string]
}

// surroundings outlive a loop, which lives for one term of leadership.
type surroundings struct {
	options   Options
	kinds     workload.Kinds
	bus       *bus.Bus
	log       *slog.Logger
	metrics   *metrics
	inventory *inventory.Inventory
	dirty     *dirtySet
	state     *state
	syncIndex *forcesync.Index
	snapshots atomic.Pointer[snapshot]
}

// New returns an Actuator. If options are not valid, the error has a line for each problem.
func New(options Options) (*Actuator, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("reading the host name: %w", err)
		}
		options.Identity = host + "_" + nuid.Next()
	}
	kinds, err := options.Kinds()
	if err != nil {
		return nil, err
	}
	reading, err := options.Reading(kinds)
	if err != nil {
		return nil, err
	}
	dirty := newDirtySet()
	a := &Actuator{surroundings: surroundings{
		options: options, kinds: kinds, log: options.Logger.With("component", "actuator"),
		dirty: dirty, state: newState(options, dirty), syncIndex: forcesync.NewIndex(),
	}}
	a.inventory = inventory.New(inventory.Options{
		Clients: options.clients(), Kinds: kinds, Reading: reading, Namespaces: options.Namespaces, IgnoreNamespaces: options.IgnoreNamespaces,
		// A private stream means that the actuator has only the permissions of Reloader.
		ReadNamespaces: !options.PrivateStream, Reloader: options.Reloader.On,
		Changes: dirty, Met: a.meet, Log: a.log, Now: options.Now,
	})
	if options.ForceSync {
		a.syncWatch = &forcesync.Watch{
			Index: a.syncIndex, Client: options.Dynamic, Namespaces: a.inventory.Scopes(), Ignored: options.IgnoreNamespaces,
			Lists: a.inventory.Lists, Log: a.log,
		}
		a.syncWatch.Expect()
	}
	if a.metrics, err = newMetrics(options, a.kinds); err != nil {
		return nil, fmt.Errorf("making metrics: %w", err)
	}
	if err := a.observe(); err != nil {
		return nil, err
	}
	return a, nil
}

// meet notes the version of a workload whose kind was not served until now: changes before the workload's last write are not new to it.
func (a *Actuator) meet(w *workload.Workload) {
	a.state.met.Store(w.Key(), plan.Base{Version: w.Version, MetAt: a.options.Now()})
}

// Ready returns nil once the actuator knows the workloads, so that it acts or can take over immediately. Otherwise the error says what is missing.
func (a *Actuator) Ready() error { return a.inventory.Lists.Ready() }

// Run handles the events of the bus while this actuator is the leader. It returns when the context is done and all patches have finished, or with an
// error if the stream does not receive the events that StoresFrom asks for. Call Run once.
func (a *Actuator) Run(ctx context.Context, b *bus.Bus) error {
	if err := b.Carries(a.options.StoreClusters()); err != nil {
		return fmt.Errorf("following the secrets of other clusters' stores: %w", err)
	}
	a.bus = b
	var running sync.WaitGroup
	defer running.Wait()
	reflecting, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { a.inventory.Run(reflecting) })
	running.Go(func() { bus.NewFollower(b, a.options.StoreClusters(), a.state).Run(reflecting) })
	if a.syncWatch != nil {
		running.Go(func() { a.syncWatch.Run(reflecting) })
	}
	if !a.inventory.Wait(ctx) {
		return nil
	}
	a.log.InfoContext(ctx, "workloads listed", "workloads", len(a.inventory.Index.All()))
	if !a.options.LeaderElect {
		a.state.gapFrom = gapFrom(a.options, time.Time{})
		a.lead(ctx)
		return nil
	}
	running.Go(func() { a.watchConfinement(ctx) })
	e := kube.Election{
		Client: a.options.Client, Namespace: a.options.LeaseNamespace, Name: a.options.LeaseName, Identity: a.options.Identity,
		Unfit: a.options.Unfit, Log: a.log,
	}
	if a.options.DryRun {
		e.Name += "-dry-run" // The leader of a dry run rolls nothing, so it must not renew the Lease that tells when a leader was last active.
	}
	led, answered := e.LastLed(ctx)
	if !answered {
		return nil
	}
	a.state.gapFrom = gapFrom(a.options, led)
	return e.Run(ctx, a.lead)
}

// gapMargin is the time, in addition to the longest debounce, that a leader may take to note which changes a workload waits for.
const gapMargin = overdueCheck + kube.PatchTimeout

// gapFrom returns plan.Memory.GapFrom. Led is when a leader was last active; if it is zero, there was no leader yet and so there is no gap.
func gapFrom(o Options, led time.Time) time.Time {
	if led.IsZero() {
		return o.Now().Add(-time.Second) // Write times have a precision of one second.
	}
	return led.Add(-o.settleMax() - gapMargin)
}

func (a *Actuator) lead(ctx context.Context) {
	a.leading.Store(true)
	defer a.leading.Store(false)
	defer a.snapshots.Store(nil)
	l := newLoop(&a.surroundings)
	reporting, stopReporting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReporting()
	var writing, publishing, others sync.WaitGroup
	writing.Go(func() { l.kube.run(reporting, ctx) })
	publishing.Go(func() { l.outbox.run(reporting) })
	others.Go(func() { a.rejectUnreadable(ctx) })
	if beside := a.options.WhileLeading; beside != nil {
		others.Go(func() { beside(ctx, a.bus) })
	}
	l.run(ctx)
	others.Wait()

	// Before the program ends, publish the outcomes that are left, for at most the duration of one attempt.
	last := time.AfterFunc(publishTimeout, stopReporting)
	publishing.Wait()
	l.kube.close()
	writing.Wait()
	last.Stop()
}

// rejectRetry is the interval between attempts to dead-letter an event.
const rejectRetry = time.Minute

// rejectUnreadable dead-letters each unreadable event once, until the context is done. It runs beside the loop because it waits for NATS.
func (a *Actuator) rejectUnreadable(ctx context.Context) {
	done := make(map[events.Address]uint64)
	for {
		var retry <-chan time.Time
		unreadable := a.state.Unreadable()
		maps.DeleteFunc(done, func(at events.Address, seq uint64) bool { return unreadable[at] != seq })
		for at, seq := range unreadable {
			if _, known := done[at]; known {
				continue
			}
			if a.reject(ctx, at) {
				done[at] = seq
			} else {
				retry = time.After(rejectRetry)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.state.unreadable:
		case <-retry:
		}
	}
}

// reject dead-letters an event, and reports whether the event is dead-lettered, by this actuator or another.
func (a *Actuator) reject(ctx context.Context, at events.Address) bool {
	reason, err := a.bus.RejectLast(ctx, at)
	source := at.Source()
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		a.log.WarnContext(ctx, "dead letter not published", "source", source.String(), "namespace", source.Namespace,
			"retry_in", rejectRetry, "err", err)
		return false
	case reason != "":
		a.log.WarnContext(ctx, "event rejected", "source", source.String(), "namespace", source.Namespace, "reason", reason)
		a.metrics.reject(ctx, reason)
	}
	return true
}
