package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// consumer runs Consume and collects its deliveries.
type consumer struct {
	t          *testing.T
	deliveries chan *Delivery
	cancel     context.CancelFunc
	result     chan error
	once       sync.Once
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
		c.result <- b.Consume(ctx, opts, func(_ context.Context, d *Delivery) { c.deliveries <- d })
	}()
	t.Cleanup(c.stop)
	return c
}

// next waits for a delivery.
func (c *consumer) next() *Delivery {
	c.t.Helper()
	select {
	case d := <-c.deliveries:
		return d
	case err := <-c.result:
		c.t.Fatalf("Consume has returned: %v", err)
	case <-time.After(20 * time.Second):
		c.t.Fatal("nothing is delivered")
	}
	return nil
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

func declareWith(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return Declare(ctx, js, 1)
}

// drained waits until the consumer has nothing pending and nothing in flight.
func drained(t *testing.T, b *Bus) {
	t.Helper()
	testkit.Eventually(t, "every event is acknowledged", func() bool {
		lag, err := b.Lag(t.Context(), "actuator")
		return err == nil && lag == Lag{}
	})
}

func TestConsumeHandsOverChangesInOrder(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	var want []uint64
	for i := range 50 {
		want = append(want, mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0))
	}
	if err := errors.Join(b.PublishOutcomes(t.Context(), outcome())...); err != nil {
		t.Fatal(err)
	}
	c := consume(t, b, ConsumeOptions{})
	var got []uint64
	for range want {
		d := c.next()
		got = append(got, d.Seq)
		if d.Deliveries != 1 || d.subject != Subject(testCluster, d.Change.Source) || d.Received.IsZero() {
			t.Errorf("got %+v", d)
		}
		d.Done(t.Context(), nil)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	drained(t, b)
	c.stop()
	if len(c.deliveries) != 0 {
		t.Errorf("%d more deliveries", len(c.deliveries))
	}
}

func TestDone(t *testing.T) {
	tests := []struct {
		name string
		err  error
		// again means that the event is redelivered.
		again bool
		// letter is the reason in the dead letter. Empty means no dead letter.
		letter string
	}{
		{name: "what is done is not delivered again"},
		{name: "an unknown error is delivered again", err: errors.New("no route to host"), again: true},
		{name: "what was interrupted is delivered again", err: fmt.Errorf("patching: %w", context.Canceled), again: true},
		{name: "what is refused is a dead letter", err: fmt.Errorf("resolving: %w", &RejectError{Reason: "not-wanted", Err: errors.New("line 1\nline 2 ü")}), letter: "not-wanted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startServer(t)
			b := s.bus()
			seq := mustPublish(t, b, version("db", "1"), 0)
			c := consume(t, b, ConsumeOptions{})
			d := c.next()
			d.Done(t.Context(), tt.err)
			d.Done(t.Context(), rejectf("late", "a second call counts for nothing"))
			d.heartbeat.mu.Lock()
			if _, kept := d.heartbeat.inFlight[d.msg]; kept {
				t.Error("it is still said to be worked on")
			}
			d.heartbeat.mu.Unlock()
			if tt.again {
				if d = c.next(); d.Deliveries != 2 || d.Seq != seq {
					t.Errorf("got delivery %d of %d", d.Deliveries, d.Seq)
				}
				d.Done(t.Context(), nil)
			}
			drained(t, b)
			c.stop()
			if len(c.deliveries) != 0 {
				t.Errorf("%d more deliveries", len(c.deliveries))
			}
			letters, err := b.DeadLetters(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
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
			if e, err := FromMsg(l.Subject, l.Header, l.Data); err != nil || e.ID() != d.Change.ID() {
				t.Errorf("the event cannot be read from the dead letter: %v", err)
			}
		})
	}
}

// TestConsumeRejects publishes every kind of message that must not reach a handler.
func TestConsumeRejects(t *testing.T) {
	valid := func(alter func(*nats.Msg)) *nats.Msg {
		msg, err := ToMsg(mustEvent(t, version("db", "1").Event), "keyturn.v1.prod-eu.secret.shop.db")
		if err != nil {
			t.Fatal(err)
		}
		alter(msg)
		return msg
	}
	tests := []struct {
		name   string
		msg    *nats.Msg
		reason string
	}{
		{"a message that is no event", &nats.Msg{Subject: "keyturn.v1.prod-eu.secret.shop.a", Data: []byte("hunter2")}, ReasonMalformed},
		{"a subject that nothing encodes to", valid(func(m *nats.Msg) { m.Subject = "keyturn.v1.prod-eu.secret.shop.db.v2" }), ReasonMalformed},
		{"data that is not JSON", valid(func(m *nats.Msg) { m.Data = []byte("hunter2") }), ReasonMalformed},
		{"structured mode", valid(func(m *nats.Msg) { m.Header["Content-Type"] = []string{"application/cloudevents+json"} }), ReasonStructured},
		{"too much data", valid(func(m *nats.Msg) { m.Data = make([]byte, MaxEventSize+1) }), ReasonOversized},
		{"too large a header", valid(func(m *nats.Msg) { m.Header["x"] = []string{strings.Repeat("x", MaxHeaderSize)} }), ReasonOversized},
		{"another cluster's subject", valid(func(m *nats.Msg) { m.Subject = "keyturn.v1.prod-us.secret.shop.db" }), ReasonForeignCluster},
		{"another cluster's event", valid(func(m *nats.Msg) {
			c := version("db", "1")
			c.Cluster = "prod-us"
			other, err := ToMsg(mustEvent(t, c.Event), m.Subject)
			if err != nil {
				t.Fatal(err)
			}
			*m = *other
		}), ReasonSubjectMismatch},
		{"another object's event", valid(func(m *nats.Msg) { m.Subject = "keyturn.v1.prod-eu.secret.bank.db" }), ReasonSubjectMismatch},
		{"a later specversion", valid(func(m *nats.Msg) { m.Header["ce-specversion"] = []string{"2.0"} }), ReasonUnknownVersion},
		{"a later version of the type", valid(func(m *nats.Msg) { m.Header["ce-type"] = []string{"dev.keyturn.secret.changed.v2"} }), ReasonUnknownVersion},
		{"a type of somebody else", valid(func(m *nats.Msg) { m.Header["ce-type"] = []string{"org.example.changed"} }), ReasonUnknownType},
	}
	s := startServer(t)
	b := s.bus()
	reasons := make(chan string, len(tests))
	c := consume(t, b, ConsumeOptions{
		FilterSubjects: []string{"keyturn.v1.>"},
		OnReject:       func(_ context.Context, reason string) { reasons <- reason },
	})
	js := s.jetstream()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.msg.Header = maps.Clone(tt.msg.Header)
			ack, err := js.PublishMsg(t.Context(), tt.msg)
			if err != nil {
				t.Fatal(err)
			}
			select {
			case reason := <-reasons:
				if reason != tt.reason {
					t.Errorf("the reason is %s, want %s", reason, tt.reason)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it is not refused")
			}
			drained(t, b)
			letters, err := b.DeadLetters(t.Context(), 1)
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
			if len(want) > MaxEventSize {
				want = ""
			}
			if string(l.Data) != want {
				t.Errorf("the data has %d bytes, want %d", len(l.Data), len(want))
			}
		})
	}
	if len(c.deliveries) != 0 {
		t.Error("the handler was called")
	}
	letters, err := b.DeadLetters(t.Context(), 3)
	if err != nil || len(letters) != 3 {
		t.Fatalf("got %d dead letters, %v; want the last 3", len(letters), err)
	}
	if !slices.IsSortedFunc(letters, func(a, b DeadLetter) int { return a.Time.Compare(b.Time) }) {
		t.Error("the newest is not the last")
	}
}

func TestADeadLetterObeysNoServerHeader(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	c := consume(t, b, ConsumeOptions{})
	msg := &nats.Msg{Subject: "keyturn.v1.prod-eu.secret.shop.db", Header: nats.Header{"Nats-TTL": {"1h"}}, Data: []byte("x")}
	if _, err := s.jetstream().PublishMsg(t.Context(), msg, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithMsgID("1")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is a dead letter", func() bool {
		letters, err := b.DeadLetters(t.Context(), 10)
		return err == nil && len(letters) == 1
	})
	c.stop()
}

func TestAnInFlightDeliveryIsNotDeliveredAgain(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	const wait = 300 * time.Millisecond
	c := consume(t, b, ConsumeOptions{AckWait: wait})
	d := c.next()
	select {
	case again := <-c.deliveries:
		t.Fatalf("it is delivered a second time: %+v", again)
	case <-time.After(4 * wait):
	}
	d.Done(t.Context(), nil)
	drained(t, b)
}

func TestADeliveryOfAProgramThatDiedIsDeliveredAgain(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	mustPublish(t, b, version("db", "1"), 0)
	opts := ConsumeOptions{AckWait: 300 * time.Millisecond}
	first := consume(t, b, opts)
	first.next()
	first.stop()
	second := consume(t, s.bus(), opts)
	d := second.next()
	if d.Deliveries != 2 {
		t.Errorf("it is delivery %d, want 2", d.Deliveries)
	}
	d.Done(t.Context(), nil)
	drained(t, b)
}

// TestBufferedMessagesAreNaked blocks a handler, so that messages are buffered, and lets a second consumer take over.
func TestBufferedMessagesAreNaked(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	for i := range 10 {
		mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- b.Consume(ctx, ConsumeOptions{Durable: "actuator", AckWait: time.Hour}, func(ctx context.Context, d *Delivery) {
			lag, err := b.Lag(t.Context(), "actuator")
			for err == nil && lag.Pending > 0 {
				lag, err = b.Lag(t.Context(), "actuator")
			}
			cancel()
			d.Done(ctx, ctx.Err())
		})
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	second := consume(t, b, ConsumeOptions{AckWait: time.Hour})
	for range 10 {
		second.next().Done(t.Context(), nil)
	}
	drained(t, b)
}

func TestDoneIsHarmlessForASupersededDelivery(t *testing.T) {
	for name, err := range map[string]error{
		"acknowledged": nil, "refused": rejectf("not-wanted", "no"), "failed": errors.New("no"), "interrupted": context.Canceled,
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t)
			b := s.bus()
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

func TestConsumeSurvivesARestartOfTheServer(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	const sources = 20
	c := consume(t, b, ConsumeOptions{AckWait: time.Second})
	var under []*Delivery
	for i := range sources {
		mustPublish(t, b, version(fmt.Sprintf("before%d", i), "1"), 0)
	}
	for range sources {
		under = append(under, c.next())
	}
	finish := func(list []*Delivery) {
		for _, d := range list {
			d.Done(t.Context(), nil)
		}
	}
	finish(under[:5])
	s.restart(func() { finish(under[5:10]) })
	want := make(map[string]bool)
	for i := range sources {
		change := version(fmt.Sprintf("after%d", i), "1")
		want[change.Source.Name] = true
		testkit.Eventually(t, change.Source.Name+" is published", func() bool {
			_, err := b.PublishChange(t.Context(), change, 0)
			return err == nil
		})
	}
	for len(want) > 0 {
		d := c.next()
		delete(want, d.Change.Source.Name)
		d.Done(t.Context(), nil)
	}
	finish(under[10:])
	// What was finished without a server may be redelivered.
	testkit.Eventually(t, "every event is acknowledged", func() bool {
		select {
		case d := <-c.deliveries:
			d.Done(t.Context(), nil)
		default:
		}
		lag, err := b.Lag(t.Context(), "actuator")
		return err == nil && lag == Lag{}
	})
}

func TestConsumeSurvivesTheDeletionOfItsConsumer(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	first := mustPublish(t, b, version("db", "1"), 0)
	c := consume(t, b, ConsumeOptions{})
	c.next().Done(t.Context(), nil)
	drained(t, b)
	if err := s.jetstream().DeleteConsumer(t.Context(), StreamChanges, "actuator"); err != nil {
		t.Fatal(err)
	}
	// The new consumer starts from the state of the stream.
	if d := c.next(); d.Seq != first {
		t.Errorf("got %d, want %d", d.Seq, first)
	} else {
		d.Done(t.Context(), nil)
	}
	second := mustPublish(t, b, version("web", "1"), 0)
	if d := c.next(); d.Seq != second {
		t.Errorf("got %d, want %d", d.Seq, second)
	} else {
		d.Done(t.Context(), nil)
	}
	drained(t, b)
}

func TestConsumeChangesAConsumerThatDiffers(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	js := s.jetstream()
	config := jetstream.ConsumerConfig{Durable: "actuator", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "orders.>", MaxDeliver: 3}
	if _, err := js.CreateConsumer(t.Context(), StreamChanges, config); err != nil {
		t.Fatal(err)
	}
	mustPublish(t, b, version("db", "1"), 0)
	c := consume(t, b, ConsumeOptions{})
	mustPublish(t, b, version("web", "1"), 0)
	c.next().Done(t.Context(), nil)
	consumer, err := js.Consumer(t.Context(), StreamChanges, "actuator")
	if err != nil {
		t.Fatal(err)
	}
	if info := consumer.CachedInfo().Config; info.MaxDeliver != -1 || !slices.Equal(info.FilterSubjects, SourceFilters(testCluster)) {
		t.Errorf("got %+v", info)
	}
}

func TestConsumeRefusesAConsumerThatCannotBeChanged(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	config := jetstream.ConsumerConfig{Durable: "actuator", AckPolicy: jetstream.AckNonePolicy}
	if _, err := s.jetstream().CreateConsumer(t.Context(), StreamChanges, config); err != nil {
		t.Fatal(err)
	}
	err := b.Consume(t.Context(), ConsumeOptions{Durable: "actuator"}, func(context.Context, *Delivery) {})
	if !errors.Is(err, errConsumer) || !strings.Contains(err.Error(), "actuator of CHANGES: ack_policy is AckNone, want AckExplicit") {
		t.Errorf("got %v", err)
	}
	if err := b.Consume(t.Context(), ConsumeOptions{}, nil); err == nil {
		t.Error("a consumer without a name is taken")
	}
}

func TestDeliveryContinuesTheTrace(t *testing.T) {
	hop := TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	d := &Delivery{Change: change(), header: nats.Header{"Traceparent": {hop.Parent}}}
	if got := TraceFrom(d.TraceContext(t.Context())); got != hop {
		t.Errorf("got %v, want the hop", got)
	}
	d.header = nats.Header{"traceparent": {"nonsense"}}
	if got := TraceFrom(d.TraceContext(t.Context())); got != change().Trace {
		t.Errorf("got %v, want the creation", got)
	}
}
