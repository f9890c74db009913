package actuate

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/testkit"
)

// bubble is a cluster without a stream, and an actuator that leads there. It uses no network, so that it can run within synctest: a test delivers
// the events and takes the outcomes.
type bubble struct {
	*cluster
	loop *loop
	// told are the outcomes. The mutex of the cluster guards them.
	told []events.Outcome
}

// lead runs the inventory and the loop of an actuator until the test ends. Use it within synctest, with a cluster of newStreamless.
func (c *cluster) lead(options Options) *bubble {
	c.Helper()
	a, err := New(options)
	if err != nil {
		c.Fatal(err)
	}
	ctx, stop := context.WithCancel(c.Context())
	var running sync.WaitGroup
	c.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() { a.inventory.Run(ctx) })
	listing, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	if !a.inventory.Wait(listing) {
		c.Fatalf("it is not ready: %v", a.Ready())
	}
	l := newLoop(a.surroundings, unwritten(a))
	l.inFlight.done = func(*events.Delivery, context.Context, error) {}
	l.recorder.reads.last = func(context.Context, events.Source) (*events.Delivery, error) { return nil, events.ErrNotFound }
	l.dater.written = func(_ context.Context, change events.Change) (map[string]time.Time, error) {
		d := newDating(change)
		d.add(change) // The history has only this one.
		return d.written, nil
	}
	b := &bubble{cluster: c, loop: l}
	reporting, stopReporting := context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() { b.publish(reporting) })
	running.Go(func() {
		defer stopReporting()
		// This is what run does, without what it reads from the stream.
		l.resume()
		l.work(ctx)
		l.drain(ctx)
	})
	return b
}

// publish takes the outcomes of the loop, as its publisher does, until the context is done.
func (b *bubble) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case reports := <-b.loop.publisher.batches:
			b.mu.Lock()
			for _, r := range reports {
				b.told = append(b.told, r.outcome)
			}
			b.mu.Unlock()
			select {
			case <-ctx.Done():
				return
			case b.loop.publisher.published <- reports:
			}
		}
	}
}

// deliver delivers a change of db.
func (b *bubble) deliver(mutate func(*events.Change)) {
	b.published++
	b.loop.deliveries <- &events.Delivery{
		Change: b.change(mutate), Seq: b.published, Deliveries: 1, Received: time.Now(), StoredAt: time.Now(),
	}
}

// isHeld waits until a Deployment is held for a reason, with a text.
func (b *bubble) isHeld(name string, why plan.Reason, text string) {
	b.Helper()
	b.eventually(name+" is held: "+text, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return slices.ContainsFunc(b.told, func(o events.Outcome) bool {
			return o.Workload.Name == name && o.Verb == events.VerbHeld && o.Reason == why.String() && strings.Contains(o.Message, text)
		})
	})
}
