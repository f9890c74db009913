package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

// workers is how many events a watcher publishes concurrently, by default. Like a watcher, a cluster has fewer in flight while the hub is slow.
const workers = 8

const (
	// maxTries is how often the publication of an event is tried before the run is given up. Each try waits for three seconds, unless the hub
	// reports immediately that the stream has no leader.
	maxTries = 12
	// tryPause is the pause between two tries.
	tryPause = time.Second
)

// maxReads is how often reading the state is tried.
const maxReads = 6

// cluster is the publishing side of one cluster's watcher.
type cluster struct {
	name       string
	connection *nats.Conn
	bus        *bus.Bus
	inFlight   *bus.InFlight
	// versions has the number of changes of each source, and sequences the sequence of its last event on the stream.
	versions  []int
	sequences []uint64
	// retried counts the publications that were retried.
	retried atomic.Int64
}

func newCluster(name string, sources int) *cluster {
	return &cluster{name: name, versions: make([]int, sources), sequences: make([]uint64, sources)}
}

// names returns the names of the first clusters.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("cluster-%04d", i)
	}
	return list
}

// connect starts like a watcher: it connects, and verifies the streams.
func (c *cluster) connect(ctx context.Context, h *hub) error {
	var err error
	if c.connection, err = bus.Connect(ctx, h.options(c.name, "watcher")); err != nil {
		return err
	}
	c.inFlight = bus.NewInFlight(workers, time.Now)
	c.bus, err = bus.Open(ctx, c.connection, c.name, nil)
	return err
}

// events returns how many events the cluster has published.
func (c *cluster) events() int {
	var n int
	for _, version := range c.versions {
		n += version
	}
	return n
}

func (c *cluster) disconnect() {
	if c.connection != nil {
		c.connection.Close()
	}
}

// readState reads the state of the cluster from the stream, as a starting watcher does. If the hub cannot answer yet, it retries
// after one second, two seconds and so on.
func (c *cluster) readState(ctx context.Context) error {
	for tries, delay := 1, time.Second; ; tries, delay = tries+1, 2*delay {
		var known int
		err := c.bus.State(ctx, events.SourceFilters(c.name), func(stored events.Stored) error {
			known++
			return stored.Err
		})
		switch {
		case err == nil && known < len(c.versions):
			return fmt.Errorf("the stream knows %d sources, want %d", known, len(c.versions))
		case err == nil || tries == maxReads:
			return err
		}
		c.retried.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay):
		}
	}
}

// publish publishes the next event of some sources, and calls took with the time that each takes.
func (c *cluster) publish(ctx context.Context, sources []int, took func(time.Duration)) error {
	queue := make(chan int, len(sources))
	for _, i := range sources {
		queue <- i
	}
	close(queue)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range workers {
		wg.Go(func() {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = c.take(ctx, queue, took); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// take publishes the next event of the next source in the queue, as soon as one more may be in flight. It returns false if there is no more source.
func (c *cluster) take(ctx context.Context, queue <-chan int, took func(time.Duration)) (bool, error) {
	c.inFlight.Enter()
	defer c.inFlight.Leave()
	i, more := <-queue
	if !more {
		return false, nil
	}
	begun := time.Now()
	if err := c.next(ctx, i); err != nil {
		return false, err
	}
	took(time.Since(begun))
	return true, nil
}

// next publishes the next event of a source. Like a watcher, it publishes the event again if the hub does not respond in
// time.
func (c *cluster) next(ctx context.Context, i int) error {
	c.versions[i]++
	change := c.change(i)
	for tries := 1; ; tries++ {
		begun := time.Now()
		seq, err := c.bus.PublishChange(ctx, change, c.sequences[i])
		c.inFlight.Answered(begun, err)
		switch {
		case err == nil:
			c.sequences[i] = seq
			return nil
		case ctx.Err() != nil || tries == maxTries:
			return err
		}
		c.retried.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(tryPause):
		}
	}
}
