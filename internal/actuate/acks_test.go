package actuate

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// An aborted Rollout keeps an event in flight for weeks. The next leader knows only from redeliveries which later events are acked.
func TestRecordsAreCompletedWhileAnEarlierEventIsHeld(t *testing.T) {
	b := newRecordBed(t, nil, deploymentOf("web", "db", rollOn("auto")), deploymentOf("held", "other", rollOn("auto")))
	b.last.Seq = 5
	b.lag = events.Lag{Delivered: 5, AckPending: 1}
	read := b.recorder.reads.last
	b.recorder.reads.last = func(ctx context.Context, source events.Source) (*events.Delivery, error) {
		if source != db {
			return nil, events.ErrNotFound
		}
		return read(ctx, source)
	}
	for range 10 {
		b.now = b.now.Add(time.Minute)
		b.turn()
	}
	b.wantRecords(0, "the event that is not acked may be that of db")
	held := changeOf(func(c *events.Change) { c.Source.Name = "other" })
	b.intake.take(t.Context(), &events.Delivery{Change: held, Seq: 1, Deliveries: 2})
	if b.inFlight.sources(5) != 1 {
		t.Fatal("the event is not in flight")
	}
	for range 20 {
		b.now = b.now.Add(time.Minute)
		b.turn()
	}
	b.wantRecords(1, "it is that of another source, which is here")
}

func TestAnEventIsAckedThatWasDeliveredLongAgoAndIsNotInFlight(t *testing.T) {
	const long = redelivered
	at := func(delivered uint64, pending int) events.Lag {
		return events.Lag{Delivered: delivered, AckPending: pending, AckFloor: 2}
	}
	tests := []struct {
		name string
		// holds are the sequences of the events that are in flight here, each of another source.
		holds []uint64
		// said is what the server reports, one after the other. The test asks about the event at 7.
		said   []events.Lag
		pauses time.Duration
		want   bool
	}{
		{"no event is in flight elsewhere", []uint64{3}, []events.Lag{at(7, 1), at(7, 1)}, long, true},
		{"it was delivered just now", []uint64{3}, []events.Lag{at(7, 1)}, long, false},
		{"it was delivered a little earlier", []uint64{3}, []events.Lag{at(7, 1), at(7, 1)}, long - time.Second, false},
		{"it was delivered since the server was asked first", []uint64{3}, []events.Lag{at(6, 1), at(7, 1)}, long, false},
		{"and the server was asked again long after that", []uint64{3}, []events.Lag{at(6, 1), at(7, 1), at(9, 1)}, long, true},
		{"another event is in flight elsewhere", []uint64{3}, []events.Lag{at(7, 2), at(7, 2)}, long, false},
		{"what is in flight elsewhere was acked meanwhile", []uint64{3}, []events.Lag{at(7, 2), at(7, 1)}, long, true},
		{"an event in flight here came after the server was asked", []uint64{3, 9}, []events.Lag{at(7, 2), at(7, 2)}, long, false},
		{"the consumer was made anew", []uint64{3}, []events.Lag{at(7, 1), at(7, 1), at(1, 1)}, long, false},
		{"all earlier events are acked", nil, []events.Lag{{Delivered: 9, AckFloor: 7}}, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newRecordBed(t, nil)
			for _, seq := range test.holds {
				change := changeOf(func(c *events.Change) { c.Source.Name = strconv.FormatUint(seq, 10) })
				b.inFlight.deliver(t.Context(), &events.Delivery{Change: change, Seq: seq, Deliveries: 1})
			}
			got := false
			for _, lag := range test.said {
				b.recorder.acks.observe(lag)
				got = b.recorder.acks.has(7, lag)
				b.now = b.now.Add(test.pauses)
			}
			if got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestOnlyWhatTheConsumerDeliveredCountsAsInFlight(t *testing.T) {
	b := newRecordBed(t, nil)
	deliver := func(seq uint64) { b.inFlight.deliver(t.Context(), &events.Delivery{Change: changeOf(nil), Seq: seq}) }
	deliver(3)
	deliver(3)
	deliver(4) // The stream has forgotten 3.
	b.inFlight.begin(t.Context(), &events.Delivery{Change: changeOf(func(c *events.Change) { c.Source = app }), Seq: 5})
	if got := b.inFlight.sources(9); got != 1 {
		t.Errorf("%d sources have events in flight, want 1", got)
	}
	if got := b.inFlight.sources(3); got != 0 {
		t.Errorf("%d sources have events in flight of those up to 3, want none: the newest is later", got)
	}
}

// The recorder asks for every record, and 20,000 events may be held for weeks.
func TestHeldEventsAreCountedOnce(t *testing.T) {
	b := newRecordBed(t, nil)
	deliver := func(name string, seq uint64) *inFlightEvent {
		change := changeOf(func(c *events.Change) { c.Source.Name = name })
		return b.inFlight.deliver(t.Context(), &events.Delivery{Change: change, Seq: seq, Deliveries: 1})
	}
	want := func(upTo uint64, want int) {
		t.Helper()
		for range 2 {
			if got := b.inFlight.sources(upTo); got != want {
				t.Errorf("got %d sources up to %d, want %d", got, upTo, want)
			}
		}
	}
	deliver("a", 1)
	held := deliver("b", 2)
	want(1, 1)
	want(2, 2)
	if allocations := testing.AllocsPerRun(10, func() { b.inFlight.sources(2) }); allocations != 0 {
		t.Errorf("counting again allocates %v times, want none", allocations)
	}
	deliver("c", 3)
	want(3, 3)
	b.inFlight.finish(t.Context(), held, nil)
	want(3, 2)
}
