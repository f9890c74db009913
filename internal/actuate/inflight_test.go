package actuate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestAnEventIsFinishedWhenItsLastHoldIsReleased(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	options := testOptions()
	f := newInFlightEvents(options.Tracer, durable(options), a.metrics, options.Now)
	var finished []error
	f.done = func(_ *events.Delivery, _ context.Context, err error) { finished = append(finished, err) }
	first := f.begin(t.Context(), &events.Delivery{Change: changeOf(nil)})
	second := f.begin(t.Context(), &events.Delivery{Change: changeOf(nil)})
	first.open, second.open = 2, 1

	f.release(t.Context(), first)
	if len(finished) != 0 || len(f.open) != 2 {
		t.Fatalf("%d are finished and %d open after the first of two releases", len(finished), len(f.open))
	}
	denied := errors.New("denied")
	first.err = denied
	f.release(t.Context(), first)
	if len(finished) != 1 || !errors.Is(finished[0], denied) || len(f.open) != 1 {
		t.Fatalf("finished with %v, and %d are open; want one, with what went wrong", finished, len(f.open))
	}
	f.abandon(t.Context())
	if len(finished) != 2 || !errors.Is(finished[1], context.Canceled) || len(f.open) != 0 {
		t.Errorf("finished with %v, and %d are open; want the other one given back", finished, len(f.open))
	}
}

func TestAReplayIsNoDeliveryOfTheConsumer(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	options := testOptions()
	f := newInFlightEvents(options.Tracer, durable(options), a.metrics, options.Now)
	f.done = func(*events.Delivery, context.Context, error) {}
	delivery := func(replay uint64) *events.Delivery {
		return &events.Delivery{Change: changeOf(nil), Seq: 7, Replay: replay}
	}
	first, replay, again := f.deliver(t.Context(), delivery(0)), f.deliver(t.Context(), delivery(3)), f.deliver(t.Context(), delivery(3))
	if first.again != nil || replay.again != again {
		t.Error("want the second delivery of the replay to answer for the first, and none for that of the change")
	}
	if got := f.sources(7); got != 1 {
		t.Errorf("in flight of the consumer: got %d, want 1", got)
	}
	f.finish(t.Context(), first, nil)
	if got := f.sources(7); got != 0 {
		t.Errorf("in flight of the consumer, with a replay alone: got %d, want 0", got)
	}
	f.abandon(t.Context())
}

// An answer to an event of the lost stream would be taken for one to the event that has its sequence now.
func TestAnEventOfALostStreamIsNotAnswered(t *testing.T) {
	b := newHeldBed(t, testOptions())
	b.inFlight.done = func(d *events.Delivery, _ context.Context, err error) {
		if _, done := b.done[d]; !done { // Only the first call counts.
			b.done[d] = err
		}
	}
	lost := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
	deliver := func(name string, seq uint64, deliveries int, stored time.Time) *inFlightEvent {
		change := changeOf(func(c *events.Change) { c.Source.Name, c.UID = name, name })
		return b.inFlight.deliver(t.Context(), &events.Delivery{Change: change, Seq: seq, Deliveries: deliveries, StoredAt: stored})
	}
	deliver("kept", 3, 1, lost.Add(-time.Hour))
	first := deliver("a", 5, 1, lost.Add(-time.Minute))
	kept := deliver("kept", 3, 2, lost.Add(-time.Hour))
	if len(b.done) != 0 {
		t.Fatalf("%d are answered while the stream is as it was", len(b.done))
	}
	second, third := deliver("b", 4, 1, lost.Add(time.Minute)), deliver("c", 5, 1, lost.Add(time.Minute))
	b.inFlight.finish(t.Context(), first, nil)
	if err := b.done[first.delivery]; !errors.Is(err, events.ErrRedelivered) {
		t.Errorf("the event that the stream has lost is answered %v, want no answer", err)
	}
	for _, e := range []*inFlightEvent{kept, second, third} {
		if err, done := b.done[e.delivery]; done {
			t.Errorf("the event of %s is answered %v, want no answer yet", e.delivery.Change.Source.Name, err)
		}
		b.inFlight.finish(t.Context(), e, nil)
		if err, done := b.done[e.delivery]; !done || err != nil {
			t.Errorf("the event of %s is answered %v, %v, want it acked", e.delivery.Change.Source.Name, err, done)
		}
	}
}
