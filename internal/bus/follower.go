package bus

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// checkInterval is the interval between checks that the stream is the same, and readInterval the interval between complete readings.
	checkInterval, readInterval = 30 * time.Second, time.Hour
	// replicaLag is how far a server of a stream may be behind the others. An event counts as missing only if it still is after this time.
	replicaLag = 2 * time.Second
)

// Follower reads the last event of every source, and then each new one. It has no position that could be ahead of the stream: it reads everything
// again after anything that may have cost it an event (the connection or a consumer was lost, the stream was restored, created again or purged), and
// once an hour. Each such reading is an epoch. The previous epoch continues until the new one is complete. No error ends a Follower.
type Follower struct {
	bus     *Bus
	filters []string
	taker   Taker
}

// NewFollower returns a Follower of the changes of the bus's cluster, and of secrets in stores that watchers of other clusters watch for it.
func NewFollower(b *Bus, storesFrom []string, taker Taker) *Follower {
	return &Follower{bus: b, filters: slices.Concat(events.SourceFilters(b.cluster), events.StoreFilters(storesFrom)), taker: taker}
}

// Run follows the stream until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	reconnected := make(chan struct{}, 1)
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { f.bus.OnReconnect(ctx, reconnected) })
	current := &epoch{stop: func() {}}
	defer func() { current.end() }()
	delays := followerBackoff()
	for number := uint32(1); ctx.Err() == nil; number++ {
		began := time.Now()
		next, err := f.begin(ctx, number)
		if err == nil {
			current.end()
			current = next
			f.taker.Complete(current.first)
			err = f.watch(ctx, current, reconnected)
		}
		if time.Since(began) >= checkInterval {
			delays = followerBackoff()
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		delay := delays.Step()
		f.bus.logger.WarnContext(ctx, "cannot read the last change of every source, retrying", "err", err, "retry_in", delay)
		select {
		case <-ctx.Done():
		case <-reconnected:
		case <-time.After(delay):
		}
	}
}

func followerBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt32, Cap: checkInterval}
}

// begin starts an epoch, and returns it once it is complete.
func (f *Follower) begin(ctx context.Context, number uint32) (*epoch, error) {
	info, err := infoOf(ctx, f.bus.changes)
	if err != nil {
		return nil, err
	}
	e := &epoch{
		bus: f.bus, taker: f.taker, number: number, created: info.Created, first: info.State.LastSeq, last: info.State.LastSeq, settled: time.Now(),
		complete: make(chan struct{}, len(f.filters)), failed: make(chan error, len(f.filters)),
	}
	if info.Config.Replicas > 1 {
		e.settled = e.settled.Add(replicaLag)
	}
	following, stop := context.WithCancel(ctx)
	e.stop = stop
	for _, filter := range f.filters {
		e.parts.Go(func() { e.follow(following, filter) })
	}
	for range f.filters {
		select {
		case <-e.complete:
		case err = <-e.failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			e.end()
			return nil, err
		}
	}
	return e, nil
}

// watch waits until another epoch is needed, and returns the reason, or nil if it is only time for one.
func (f *Follower) watch(ctx context.Context, e *epoch, reconnected <-chan struct{}) error {
	check, whole := time.NewTicker(checkInterval), time.NewTimer(readInterval)
	defer check.Stop()
	defer whole.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-whole.C:
			return nil
		case err := <-e.failed:
			return err
		case <-reconnected:
			return errReconnected
		case <-check.C:
		}
		err := e.check(ctx)
		if errors.Is(err, errOtherStream) && kube.Sleep(ctx, replicaLag) {
			err = e.check(ctx)
		}
		switch {
		case errors.Is(err, errOtherStream):
			return err
		case err != nil && ctx.Err() == nil:
			f.bus.logger.WarnContext(ctx, "cannot check whether the stream has lost events", "err", err)
		}
	}
}
