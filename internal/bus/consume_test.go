package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// consumer runs Consume and collects its deliveries.
type consumer struct {
	t          *testing.T
	deliveries chan *Delivery
	cancel     context.CancelFunc
	result     chan error
	once       sync.Once
	// rejected has the errors of reject, by the sequence of the event.
	rejected sync.Map
}

func consume(t *testing.T, b *Bus, opts ConsumeOptions) *consumer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &consumer{t: t, deliveries: make(chan *Delivery, 4096), cancel: cancel, result: make(chan error, 1)}
	if opts.Durable == "" {
		opts.Durable = "actuator"
	}
	if opts.Backoff == nil {
		opts.Backoff = func(int) time.Duration { return 10 * time.Millisecond }
	}
	go func() {
		c.result <- b.Consume(ctx, opts, func(ctx context.Context, d *Delivery) {
			if err, again := c.rejected.Load(d.Seq); again {
				d.Done(ctx, err.(error))
				return
			}
			c.deliveries <- d
		})
	}()
	t.Cleanup(c.stop)
	return c
}

// next waits for a delivery. A stream that sources another one, which it does not reach at once, tries again after 10 seconds, and then after 20 and
// 30: see calculateRetryBackoff of the server.
func (c *consumer) next() *Delivery {
	c.t.Helper()
	select {
	case d := <-c.deliveries:
		return d
	case err := <-c.result:
		c.t.Fatalf("Consume has returned: %v", err)
	case <-time.After(90 * time.Second):
		c.t.Fatal("nothing is delivered")
	}
	return nil
}

// reject rejects a delivery, and rejects it again if it is delivered again: while the disk is busy, the server can take longer than its dead letter is
// waited for.
func (c *consumer) reject(d *Delivery, err error) {
	c.rejected.Store(d.Seq, err)
	d.Done(c.t.Context(), err)
}

// stop ends Consume and checks that it returns nil.
func (c *consumer) stop() {
	c.once.Do(func() {
		c.cancel()
		if err := <-c.result; err != nil {
			c.t.Errorf("Consume returns %v", err)
		}
	})
}

// drained waits until the consumer has nothing pending and nothing in flight.
func drained(t *testing.T, b *Bus) {
	t.Helper()
	testkit.Await(t, "every event is acknowledged", func(ctx context.Context) bool {
		return isDrained(ctx, b, "actuator")
	})
}

// left returns how many events of CHANGES a consumer has not been handed, and how many are in flight.
func left(ctx context.Context, b *Bus, durable string) (pending, inFlight int, err error) {
	consumer, err := b.changes.Consumer(ctx, durable)
	if err != nil {
		return 0, 0, err
	}
	return int(consumer.CachedInfo().NumPending), consumer.CachedInfo().NumAckPending, nil
}

// isDrained reports whether a consumer of CHANGES has nothing pending and nothing in flight.
func isDrained(ctx context.Context, b *Bus, durable string) bool {
	pending, inFlight, err := left(ctx, b, durable)
	return err == nil && pending == 0 && inFlight == 0
}

func TestConsumeHandsOverChangesInOrder(t *testing.T) {
	b := sharedServer(t).bus()
	var want []uint64
	for i := range 50 {
		want = append(want, mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0))
	}
	mustTell(t, b, outcome())
	c := consume(t, b, ConsumeOptions{})
	var got []uint64
	for range want {
		d := c.next()
		got = append(got, d.Seq)
		if d.Deliveries != 1 || d.subject != events.Subject(testCluster, d.Change.Source) {
			t.Errorf("got %+v", d)
		}
		d.Done(t.Context(), nil)
	}
	testkit.WantEqual(t, "difference", want, got)
	drained(t, b)
	c.stop()
	if len(c.deliveries) != 0 {
		t.Errorf("%d more deliveries", len(c.deliveries))
	}
}

// TestConsumeRejects publishes every kind of message that must not reach a handler.
func TestConsumeRejects(t *testing.T) {
	valid := func(alter func(*nats.Msg)) *nats.Msg {
		msg := messageWith(t, version("db", "1"))
		alter(msg)
		return msg
	}
	tests := []struct {
		name   string
		msg    *nats.Msg
		reason string
	}{
		{"a message that is no event", &nats.Msg{Subject: "keyturn.v1.prod-eu.secret.shop.a", Data: []byte("hunter2")}, events.ReasonMalformed},
		{"a subject that nothing encodes to", valid(func(m *nats.Msg) { m.Subject = "keyturn.v1.prod-eu.secret.shop.db.v2" }), events.ReasonMalformed},
		{"too much data", valid(func(m *nats.Msg) { m.Data = make([]byte, events.MaxEventSize+1) }), events.ReasonOversized},
		{"another cluster's subject", valid(func(m *nats.Msg) { m.Subject = "keyturn.v1.prod-us.secret.shop.db" }), events.ReasonForeignCluster},
		{"another cluster's event", valid(func(m *nats.Msg) {
			c := version("db", "1")
			c.Cluster = "prod-us"
			other := messageWith(t, c)
			m.Header, m.Data = other.Header, other.Data
		}), events.ReasonSubjectMismatch},
		{"a later specversion", valid(func(m *nats.Msg) { m.Header["ce-specversion"] = []string{"2.0"} }), events.ReasonUnknownVersion},
		{"a later version of the type", valid(func(m *nats.Msg) { m.Header["ce-type"] = []string{"dev.keyturn.secret.changed.v2"} }), events.ReasonUnknownVersion},
	}
	s := sharedServer(t)
	b := s.bus()
	reasons := make(chan string, len(tests))
	c := consume(t, b, ConsumeOptions{
		FilterSubjects: []string{"keyturn.v1.>"},
		OnReject: func(_ context.Context, reason string) {
			select {
			case reasons <- reason:
			default: // It is delivered every 10 ms while the disk is so busy that no dead letter is stored.
			}
		},
	})
	js := s.jetstream()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for len(reasons) > 0 {
				<-reasons // The one before may have been delivered twice.
			}
			tt.msg.Header = maps.Clone(tt.msg.Header)
			ack, err := js.PublishMsg(t.Context(), tt.msg)
			testkit.Must(t, err)
			if reason := testkit.Receive(t, "the reason of the refusal", reasons); reason != tt.reason {
				t.Errorf("the reason is %s, want %s", reason, tt.reason)
			}
			drained(t, b)
			letters, err := deadLetters(t, b, 1)
			if err != nil || len(letters) != 1 {
				t.Fatalf("got %v, %v", letters, err)
			}
			l := letters[0]
			if l.Reason != tt.reason || l.Seq != ack.Sequence || l.Subject != tt.msg.Subject || l.Error == "" {
				t.Errorf("got %+v", l)
			}
			if strings.Contains(l.Error, "hunter2") {
				t.Errorf("the error quotes the data: %s", l.Error)
			}
			want := string(tt.msg.Data)
			if len(want) > events.MaxEventSize {
				want = ""
			}
			stored := messages(t, js, events.StreamDeadLetters)
			if data := stored[len(stored)-1].Data; string(data) != want {
				t.Errorf("the data has %d bytes, want %d", len(data), len(want))
			}
		})
	}
	if len(c.deliveries) != 0 {
		t.Error("the handler was called")
	}
	letters, err := deadLetters(t, b, 3)
	if err != nil || len(letters) != 3 {
		t.Fatalf("got %d dead letters, %v; want the last 3", len(letters), err)
	}
	if !slices.IsSortedFunc(letters, func(a, b events.DeadLetter) int { return a.Time.Compare(b.Time) }) {
		t.Error("the newest is not the last")
	}
}
