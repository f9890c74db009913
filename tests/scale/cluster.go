package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
)

// workers is how many events a watcher publishes at once, by default.
const workers = 8

// maxTries is how often an event is published until the run is given up. Each try waits for five seconds.
const maxTries = 12

// maxReads is how often the state is asked for.
const maxReads = 6

// dataKeys is how many data keys a source has.
const dataKeys = 4

// cluster is the publishing side of one cluster's watcher.
type cluster struct {
	name       string
	connection *nats.Conn
	bus        *events.Bus
	// versions has the number of changes of each source, sequences the sequence of its last event on the stream.
	versions  []int
	sequences []uint64
	// retried counts the publications that were made again.
	retried atomic.Int64
}

func newCluster(number, sources int) *cluster {
	return &cluster{name: fmt.Sprintf("cluster-%04d", number), versions: make([]int, sources), sequences: make([]uint64, sources)}
}

// connect begins as a watcher does: it connects, and verifies the streams.
func (c *cluster) connect(ctx context.Context, url string) error {
	var err error
	options := events.ConnectOptions{URL: url, Cluster: c.name, Role: "watcher", Name: "scale"}
	if c.connection, err = events.Connect(ctx, options); err != nil {
		return err
	}
	c.bus, err = events.Open(ctx, c.connection, c.name, nil)
	return err
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

// publish publishes the next event of some sources, and hands the time that each takes to took.
func (c *cluster) publish(ctx context.Context, sources []int, took func(time.Duration)) error {
	queue := make(chan int)
	var wg sync.WaitGroup
	errs := make([]error, workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for worker := range workers {
		wg.Go(func() {
			for i := range queue {
				begun := time.Now()
				if err := c.next(ctx, i); err != nil {
					errs[worker] = err
					cancel()
					return
				}
				took(time.Since(begun))
			}
		})
	}
feed:
	for _, i := range sources {
		select {
		case queue <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	return errors.Join(errs...)
}

// next publishes the next event of a source. One that the hub does not answer in time is published again, as a watcher does.
func (c *cluster) next(ctx context.Context, i int) error {
	c.versions[i]++
	change := c.change(i)
	for tries := 1; ; tries++ {
		seq, err := c.bus.PublishChange(ctx, change, c.sequences[i])
		switch {
		case err == nil:
			c.sequences[i] = seq
			return nil
		case ctx.Err() != nil || tries == maxTries:
			return err
		}
		c.retried.Add(1)
	}
}

// change returns a watcher's event about a source: first that it was observed, then that one of its keys has changed.
func (c *cluster) change(i int) events.Change {
	version := strconv.Itoa(1_000_000 + i + c.versions[i]*len(c.versions))
	change := events.Change{
		Cluster: c.name,
		Source:  events.Source{Kind: events.KindSecret, Namespace: fmt.Sprintf("team-%02d", i%40), Name: fmt.Sprintf("credentials-%04d", i)},
		Verb:    events.VerbObserved, UID: fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i), ResourceVersion: version, Time: time.Now(),
		Fingerprint: fingerprint(), Keys: make(map[string]events.Key, dataKeys), WrittenAt: time.Now(),
		Trace: events.TraceContext{Parent: fmt.Sprintf("00-%016x%016x-%016x-01", rand.Uint64(), rand.Uint64(), rand.Uint64())},
	}
	if i%2 == 1 {
		change.Source.Kind = events.KindConfigMap
	}
	for key := range dataKeys {
		change.Keys[fmt.Sprintf("key-%d", key)] = events.Key{Fingerprint: fingerprint()}
	}
	if c.versions[i] > 1 {
		change.Verb, change.Changed, change.ChangedAt, change.Previous = events.VerbChanged, []string{"key-0"}, version, fingerprint()
		change.Keys["key-0"] = events.Key{Fingerprint: fingerprint(), ChangedAt: version}
	}
	return change
}

// fingerprint returns a random fingerprint, as incompressible as a real one.
func fingerprint() string { return fmt.Sprintf("k0a1b2c3d:%016x%016x", rand.Uint64(), rand.Uint64()) }
