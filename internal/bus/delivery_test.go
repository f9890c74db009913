package bus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestDone(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		// again means that the event is redelivered.
		again bool
		// letter is the reason in the dead letter. Empty means no dead letter.
		letter string
		wait   time.Duration
	}{
		{name: "what is done is not delivered again"},
		{name: "an unknown error is delivered again", err: errors.New("no route to host"), again: true},
		{name: "what is left to a later delivery is not answered", err: ErrRedelivered, again: true, wait: time.Second},
		{name: "what is refused is a dead letter", err: fmt.Errorf("resolving: %w", &events.RejectError{Reason: "not-wanted", Err: errors.New("line 1\nline 2 ü")}), letter: "not-wanted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := sharedServer(t).bus()
			seq := mustPublish(t, b, version("db", "1"), 0)
			c := consume(t, b, ConsumeOptions{AckWait: tt.wait})
			d := c.next()
			if tt.letter != "" {
				c.reject(d, tt.err)
			}
			d.Done(t.Context(), tt.err)
			d.Done(t.Context(), events.Rejectf("late", "a second call counts for nothing"))
			testkit.Eventually(t, "it is no longer said to be worked on", func() bool {
				beating := d.consumption.heartbeat
				beating.mu.Lock()
				defer beating.mu.Unlock()
				_, kept := beating.inFlight[d.msg]
				return !kept
			})
			if tt.again {
				if d = c.next(); d.Deliveries < 2 || d.Deliveries > 2 && tt.wait == 0 || d.Seq != seq {
					t.Errorf("got delivery %d of %d", d.Deliveries, d.Seq)
				}
				d.Done(t.Context(), nil)
			}
			drained(t, b)
			c.stop()
			if len(c.deliveries) != 0 && tt.wait == 0 {
				t.Errorf("%d more deliveries", len(c.deliveries))
			}
			letters, err := deadLetters(t, b, 10)
			testkit.Must(t, err)
			if tt.letter == "" {
				if len(letters) != 0 {
					t.Errorf("got %+v", letters)
				}
				return
			}
			if len(letters) != 1 {
				t.Fatalf("got %d dead letters", len(letters))
			}
			l := letters[0]
			if l.Reason != tt.letter || l.Error != "line 1 line 2 ü" || l.Seq != seq || l.Subject != d.subject || l.Time.IsZero() {
				t.Errorf("got %+v", l)
			}
			letter := messages(t, b.js, events.StreamDeadLetters)[0]
			if e := events.NewStored(l.Subject, l.Seq, l.Time, letter.Header, letter.Data); e.ID() != d.Change.ID() {
				t.Errorf("the event cannot be read from the dead letter: %v", e.Err)
			}
		})
	}
}

func TestDoneIsHarmlessForASupersededDelivery(t *testing.T) {
	for name, err := range map[string]error{"acknowledged": nil, "failed": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			b := sharedServer(t).bus()
			c := consume(t, b, ConsumeOptions{})
			first := mustPublish(t, b, version("db", "1"), 0)
			old := c.next()
			second := mustPublish(t, b, version("db", "2"), first)
			newer := c.next()
			old.Done(t.Context(), err)
			if newer.Seq != second || newer.Change.ResourceVersion != "2" {
				t.Errorf("got %+v", newer)
			}
			newer.Done(t.Context(), errors.New("try again"))
			if newer = c.next(); newer.Seq != second {
				t.Errorf("the newer event is lost: got %d", newer.Seq)
			}
			newer.Done(t.Context(), nil)
			drained(t, b)
			c.stop()
			if len(c.deliveries) != 0 {
				t.Errorf("%d more deliveries", len(c.deliveries))
			}
		})
	}
}

func TestDeliveryContinuesTheTrace(t *testing.T) {
	hop := events.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	d := &Delivery{Change: change(), header: nats.Header{"Traceparent": {hop.Parent}}}
	if got := events.TraceFrom(d.TraceContext(t.Context())); got != hop {
		t.Errorf("got %v, want the hop", got)
	}
	d.header = nats.Header{"traceparent": {"nonsense"}}
	if got := events.TraceFrom(d.TraceContext(t.Context())); got != change().Trace {
		t.Errorf("got %v, want the creation", got)
	}
}

// The server delivers again what was in no heartbeat for the ack wait.
func TestADeliveryThatIsInFlightHasHeartbeatsUntilItIsDone(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	d := consume(t, b, ConsumeOptions{AckWait: 3 * time.Second}).next()
	acks, err := s.connect().SubscribeSync(d.msg.Reply())
	testkit.Must(t, err)
	next := func() string {
		t.Helper()
		ack, err := acks.NextMsg(testkit.Patience)
		testkit.Must(t, err)
		return string(ack.Data)
	}
	for range 2 {
		if got := next(); got != "+WPI" {
			t.Fatalf("while it is in flight, it is answered with %q, want that work is in progress", got)
		}
	}
	d.Done(t.Context(), nil)
	last := next()
	for last == "+WPI" {
		last = next()
	}
	if last != "+ACK" {
		t.Errorf("when it is done, it is answered with %q", last)
	}
	drained(t, b)
}

func TestADeliverySaysWhenItsEventExpires(t *testing.T) {
	for ttl, want := range map[string]time.Time{"": {}, "never": {}, "24h0m0s": testTime.Add(24 * time.Hour)} {
		d := &Delivery{StoredAt: testTime, header: nats.Header{jetstream.MsgTTLHeader: {ttl}}}
		if got := d.Expires(); !got.Equal(want) {
			t.Errorf("with the TTL %q it expires at %s, want %s", ttl, got, want)
		}
	}
}
