package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// consumeOutcomes runs ConsumeOutcomes. It returns when the consumer exists, so that what is published next is delivered.
func consumeOutcomes(t *testing.T, b *Bus, opts ConsumeOptions) *consumer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &consumer{t: t, deliveries: make(chan *Delivery, 4096), cancel: cancel, result: make(chan error, 1)}
	opts.Backoff = func(int) time.Duration { return 10 * time.Millisecond }
	go func() {
		c.result <- b.ConsumeOutcomes(ctx, opts, func(_ context.Context, d *Delivery) { c.deliveries <- d })
	}()
	t.Cleanup(c.stop)
	testkit.Await(t, "the consumer is there", func(ctx context.Context) bool {
		_, err := b.history.Consumer(ctx, opts.Durable)
		return err == nil
	})
	return c
}

// outcomeOf returns an outcome of the test's workload at a revision.
func outcomeOf(verb events.Verb, revision string) events.Outcome {
	o := outcome()
	o.Verb, o.Revision, o.Cause = verb, revision, "cause-"+revision
	return o
}

func mustTell(t *testing.T, b *Bus, outcomes ...events.Outcome) {
	t.Helper()
	for _, o := range outcomes {
		published(t, func() error { return errors.Join(b.PublishOutcomes(t.Context(), o)...) })
	}
}

func TestConsumeOutcomesBeginsWithTheNextOneAndMissesNoneThatIsSuperseded(t *testing.T) {
	b := sharedServer(t).bus()
	mustTell(t, b, outcomeOf(events.VerbCompleted, "past"))
	c := consumeOutcomes(t, b, ConsumeOptions{Durable: "notify"})
	mustPublish(t, b, version("db", "1"), 0)
	want := []events.Outcome{outcomeOf(events.VerbStarted, "r1"), outcomeOf(events.VerbHeld, "r2"), outcomeOf(events.VerbFailed, "r1"), outcomeOf(events.VerbSkipped, "r3")}
	mustTell(t, b, want...)
	var got []events.Outcome
	for range want {
		d := c.next()
		got = append(got, d.Outcome)
		if d.Change.Source.Name != "" || d.subject != events.HistorySubject(events.OutcomeSubject(testCluster, d.Outcome.Workload)) {
			t.Errorf("got %+v", d)
		}
		if parent := events.TraceFrom(d.TraceContext(t.Context())).Parent; parent != d.Outcome.Trace.Parent {
			t.Errorf("the trace is %q, want that of the outcome, %q", parent, d.Outcome.Trace.Parent)
		}
		d.Done(t.Context(), nil)
	}
	testkit.WantEqual(t, "outcomes", want, got)
}

func TestConsumeOutcomesPassesOverWhatIsNoOutcomeAndBuriesNothing(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	reasons := make(chan string, 100)
	c := consumeOutcomes(t, b, ConsumeOptions{Durable: "notify", OnReject: func(_ context.Context, reason string) { reasons <- reason }})
	bad := &nats.Msg{Subject: events.HistorySubject(events.OutcomeSubject(testCluster, outcome().Workload)), Data: []byte("hunter2")}
	testkit.Must(t, errIn(s.jetstream().PublishMsg(t.Context(), bad)))
	mustTell(t, b, outcomeOf(events.VerbFailed, "r1"))
	d := c.next()
	if d.Outcome.Revision != "r1" {
		t.Errorf("got %+v, want the outcome after the message that is none", d.Outcome)
	}
	d.Done(t.Context(), nil)
	if reason := testkit.Receive(t, "the reason of the refusal", reasons); reason != events.ReasonMalformed {
		t.Errorf("the reason is %q", reason)
	}
	testkit.Await(t, "every event is acknowledged", func(ctx context.Context) bool {
		consumer, err := b.history.Consumer(ctx, "notify")
		return err == nil && consumer.CachedInfo().NumAckPending == 0 && consumer.CachedInfo().NumPending == 0
	})
	letters, err := deadLetters(t, b, 1)
	testkit.Must(t, err)
	if len(letters) != 0 {
		t.Errorf("got %+v, want no dead letter: the stream keeps the message", letters)
	}
}

func TestConsumeOutcomesLeavesNothingBehindForEver(t *testing.T) {
	b := sharedServer(t).bus()
	consumeOutcomes(t, b, ConsumeOptions{Durable: "notify"})
	consumer, err := b.history.Consumer(t.Context(), "notify")
	testkit.Must(t, err)
	config := consumer.CachedInfo().Config
	if config.InactiveThreshold != retention || config.DeliverPolicy != jetstream.DeliverNewPolicy || config.AckPolicy != jetstream.AckExplicitPolicy {
		t.Errorf("got %+v", config)
	}
}
