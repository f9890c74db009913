package embedded

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// traffic is changes that are published and consumed.
type traffic struct {
	mu sync.Mutex
	// accepted says whether a change was published, by the event's id, and arrivals have the sequence of each delivery.
	accepted map[string]bool
	arrivals map[string][]uint64
}

func newTraffic() *traffic {
	return &traffic{accepted: map[string]bool{}, arrivals: map[string][]uint64{}}
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

// publish repeats until the change is published.
func (f *traffic) publish(ctx context.Context, b *bus.Bus, change events.Change) {
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 3*time.Second) {
		bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := b.PublishChange(bounded, change, 0)
		cancel()
		if err == nil {
			f.mu.Lock()
			f.accepted[change.ID()] = true
			f.mu.Unlock()
			return
		}
		<-time.After(delay)
	}
}

// receive notes an event that arrived.
func (f *traffic) receive(ctx context.Context, d *bus.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.arrivals[d.Change.ID()] = append(f.arrivals[d.Change.ID()], d.Seq)
	d.Done(ctx, nil)
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

// check compares what was accepted with what arrived and what the history has.
func (f *traffic) check(t *testing.T, b *bus.Bus) {
	t.Helper()
	var history map[string]int
	var err error
	testkit.Await(t, "the history is read", func(ctx context.Context) bool { // The stream may be without a leader.
		history = make(map[string]int)
		err = b.History(ctx, bus.HistoryQuery{}, func(stored events.Stored) error {
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
