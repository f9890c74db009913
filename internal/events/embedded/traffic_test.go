package embedded

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// traffic is a stream of changes that are published and consumed all the time.
type traffic struct {
	mu sync.Mutex
	// made is when each change happened, by the event's id, accepted whether it was published, and arrivals have the sequence
	// of each delivery.
	made     map[string]time.Time
	accepted map[string]bool
	arrivals map[string][]uint64
	// publishing and arriving are the longest times from a change to its publication and to its arrival, since they were asked for.
	publishing, arriving time.Duration
}

func newTraffic() *traffic {
	return &traffic{made: map[string]time.Time{}, accepted: map[string]bool{}, arrivals: map[string][]uint64{}}
}

// numbered returns a change of a Secret of its own.
func numbered(i int) events.Change {
	return events.Change{
		Cluster: "blue", Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: fmt.Sprintf("db-%d", i)},
		Verb: events.VerbChanged, UID: fmt.Sprintf("6b0c2a4e-6c1d-4f6e-9a53-%012d", i), ResourceVersion: fmt.Sprint(i + 1),
		Fingerprint: fmt.Sprintf("k0a1b2c3d:%032x", i), Time: time.Now().UTC(), ChangedAt: fmt.Sprint(i + 1), Changed: []string{"password"},
		Keys: map[string]events.Key{"password": {Fingerprint: fmt.Sprintf("k0a1b2c3d:%032x", i), ChangedAt: fmt.Sprint(i + 1)}},
	}
}

// generate makes a change every 100 milliseconds until ctx ends, each of a Secret of its own, and publishes it as the watcher does.
func (f *traffic) generate(ctx context.Context, bus *events.Bus) {
	var publishing sync.WaitGroup
	defer publishing.Wait()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		change := numbered(i)
		f.mu.Lock()
		f.made[change.ID()] = time.Now()
		f.mu.Unlock()
		publishing.Go(func() { f.publish(context.WithoutCancel(ctx), bus, change) })
	}
}

// publish repeats until the change is published.
func (f *traffic) publish(ctx context.Context, bus *events.Bus, change events.Change) {
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 3*time.Second) {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := bus.PublishChange(bounded, change, 0)
		cancel()
		if err == nil {
			f.mu.Lock()
			f.accepted[change.ID()] = true
			f.publishing = max(f.publishing, time.Since(f.made[change.ID()]))
			f.mu.Unlock()
			return
		}
		<-time.After(delay)
	}
}

// receive notes an event that arrived.
func (f *traffic) receive(ctx context.Context, d *events.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := d.Change.ID()
	if len(f.arrivals[id]) == 0 {
		f.arriving = max(f.arriving, time.Since(f.made[id]))
	}
	f.arrivals[id] = append(f.arrivals[id], d.Seq)
	d.Done(ctx, nil)
}

// arrived returns how many changes have arrived.
func (f *traffic) arrived() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.arrivals)
}

// arrivalOfAll returns what reports whether all changes that were made so far have arrived.
func (f *traffic) arrivalOfAll() func() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	missing := maps.Clone(f.made)
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		maps.DeleteFunc(missing, func(id string, _ time.Time) bool { return len(f.arrivals[id]) > 0 })
		return len(missing) == 0
	}
}

// allArrived reports whether every accepted change has arrived.
func (f *traffic) allArrived() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.accepted {
		if len(f.arrivals[id]) == 0 {
			return false
		}
	}
	return true
}

// longest returns the longest times from a change to its publication and to its arrival, since the last call.
func (f *traffic) longest() (published, arrived time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	published, arrived = f.publishing, f.arriving
	f.publishing, f.arriving = 0, 0
	return published, arrived
}

// check compares what was accepted with what arrived and what the history has.
func (f *traffic) check(t *testing.T, bus *events.Bus) {
	t.Helper()
	var history map[string]int
	var err error
	testkit.Await(t, "the history is read", func(ctx context.Context) bool { // The stream may be without a leader.
		history = make(map[string]int)
		err = bus.History(ctx, events.HistoryQuery{}, func(stored events.Stored) error {
			change, err := stored.Change()
			history[change.ID()]++
			return err
		})
		return err == nil
	}, func() string { return fmt.Sprint(err) })
	f.mu.Lock()
	defer f.mu.Unlock()
	redelivered := 0
	for id := range f.accepted {
		var wrong []string
		if n := history[id]; n != 1 {
			wrong = append(wrong, fmt.Sprintf("it is %d times in the history", n))
		}
		for _, seq := range f.arrivals[id] {
			if seq != f.arrivals[id][0] {
				wrong = append(wrong, fmt.Sprintf("it arrived as %d and %d", f.arrivals[id][0], seq))
			}
		}
		redelivered += max(0, len(f.arrivals[id])-1)
		if len(f.arrivals[id]) == 0 {
			wrong = append(wrong, "it did not arrive")
		}
		if len(wrong) > 0 {
			t.Errorf("event %s: %s", id, strings.Join(wrong, ", "))
		}
	}
	t.Logf("%d changes of %d in the history, %d redeliveries", len(f.accepted), len(history), redelivered)
}
