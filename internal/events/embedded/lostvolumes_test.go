package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// longestGap bounds how long a change may take while a server is lost. An election of JetStream takes 4 to 9 seconds.
const longestGap = 30 * time.Second

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

// generate makes a change every 100 milliseconds until ctx ends, each of a Secret of its own, and publishes it as the watcher does.
func (f *traffic) generate(ctx context.Context, bus *events.Bus) {
	var publishing sync.WaitGroup
	defer publishing.Wait()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		change := events.Change{
			Cluster: "blue", Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: fmt.Sprintf("db-%d", i)},
			Verb: events.VerbChanged, UID: fmt.Sprintf("6b0c2a4e-6c1d-4f6e-9a53-%012d", i), ResourceVersion: fmt.Sprint(i),
			Fingerprint: fmt.Sprintf("k0a1b2c3d:%032x", i), Time: time.Now().UTC(), ChangedAt: fmt.Sprint(i), Changed: []string{"password"},
			Keys: map[string]events.Key{"password": {Fingerprint: fmt.Sprintf("k0a1b2c3d:%032x", i), ChangedAt: fmt.Sprint(i)}},
		}
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
			defer f.mu.Unlock()
			f.accepted[change.ID()] = true
			f.publishing = max(f.publishing, time.Since(f.made[change.ID()]))
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

// counts returns how many changes were made, and how many of them arrived.
func (f *traffic) counts() (made, arrived int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.made), len(f.arrivals)
}

// longest returns the longest times from a change to its publication and to its arrival, since the last call.
func (f *traffic) longest() (published, arrived time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	published, arrived = f.publishing, f.arriving
	f.publishing, f.arriving = 0, 0
	return published, arrived
}

func TestAProgramWaitsUntilMostServersRun(t *testing.T) {
	r := newReplicas(t)
	first := r.servers[0]
	r.start(first)
	var why string
	testkit.Await(t, "the first server says that it is alone", func(ctx context.Context) bool {
		_, why = first.readiness(ctx)
		return strings.Contains(why, "[-]jetstream: jetstream: JetStream ")
	}, func() string { return why })
	var log logBuffer
	opened, connection := make(chan error, 1), r.connect("watcher", first)
	go func() {
		_, err := events.Open(t.Context(), connection, "blue", slog.New(slog.NewTextHandler(&log, nil)))
		opened <- err
	}()
	var declaring sync.WaitGroup
	declaring.Go(func() { r.declare(first) })
	testkit.Eventually(t, "the program says that it waits", func() bool { return strings.Contains(log.String(), "streams are not declared yet") })
	r.start(r.servers[1])
	r.start(r.servers[2])
	declaring.Wait()
	if err := <-opened; err != nil {
		t.Error(err)
	}
	for _, s := range r.servers {
		r.awaitReady(s)
	}
}

func TestNothingIsLostWhileEachOfThreeServersLosesItsVolumeInTurn(t *testing.T) {
	r := newReplicas(t)
	began := time.Now()
	for _, s := range r.servers {
		r.start(s)
	}
	var declaring sync.WaitGroup
	for _, s := range r.servers {
		declaring.Go(func() { r.declare(s) })
	}
	declaring.Wait()
	for _, s := range r.servers {
		r.awaitReady(s)
	}
	t.Logf("the first start took %s", time.Since(began).Round(time.Millisecond))

	f := &traffic{made: map[string]time.Time{}, accepted: map[string]bool{}, arrivals: map[string][]uint64{}}
	consumer := r.bus("actuator")
	testkit.Run(t, "consumer", func(ctx context.Context) error {
		return consumer.Consume(ctx, events.ConsumeOptions{Durable: "actuator-blue"}, f.receive)
	})
	watcher := r.bus("watcher")
	stop := testkit.Run(t, "watcher", func(ctx context.Context) error { f.generate(ctx, watcher); return nil })

	arrive := func(more int) {
		t.Helper()
		_, before := f.counts()
		testkit.Eventually(t, fmt.Sprintf("%d more changes arrive", more), func() bool {
			_, arrived := f.counts()
			return arrived >= before+more
		})
	}
	arrive(20)
	_, arrived := f.longest()
	t.Logf("without a loss: the slowest change arrived after %s", arrived.Round(time.Millisecond))
	for _, loss := range []struct {
		name   string
		server func() *replica
		lose   func(*replica)
	}{
		{"the first is killed", func() *replica { return r.servers[0] }, r.loseVolume},
		{"the second is killed", func() *replica { return r.servers[1] }, r.loseVolume},
		{"the third is killed", func() *replica { return r.servers[2] }, r.loseVolume},
		{"the leader vanishes", r.leader, r.vanish},
	} {
		s := loss.server()
		loss.lose(s)
		arrive(30)
		r.loseVolume(s)
		r.start(s)
		ready := r.awaitReady(s)
		r.current(s)
		r.declare(s)
		arrive(20)
		published, arrived := f.longest()
		t.Logf("%s: the slowest change was published after %s and arrived after %s; with an empty volume %s was ready after %s",
			loss.name, published.Round(time.Millisecond), arrived.Round(time.Millisecond), s.name, ready.Round(time.Millisecond))
		if arrived > longestGap {
			t.Errorf("%s: a change took %s, want at most %s", loss.name, arrived, longestGap)
		}
		if log := s.process.Output(); strings.Contains(log, "restarting jetstream") {
			t.Errorf("%s: jetstream was restarted while it caught up", loss.name)
		}
	}
	stop()
	testkit.Eventually(t, "all changes arrive", func() bool {
		made, arrived := f.counts()
		return made == arrived
	})
	f.check(t, consumer)

	for _, s := range r.servers[:2] {
		r.loseVolume(s)
	}
	for _, s := range r.servers[:2] {
		r.start(s)
	}
	for _, s := range r.servers {
		t.Logf("two volumes lost at once: %s was ready after %s", s.name, r.awaitReady(s).Round(time.Millisecond))
		r.current(s)
	}
	f.check(t, consumer)
}

// check compares what was accepted with what arrived and what the history has.
func (f *traffic) check(t *testing.T, bus *events.Bus) {
	t.Helper()
	history := make(map[string]int)
	err := bus.History(t.Context(), events.HistoryQuery{}, func(stored events.Stored) error {
		change, err := stored.Change()
		history[change.ID()]++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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
	t.Logf("%d changes, %d redeliveries", len(f.accepted), redelivered)
}
