package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestConsumeSurvivesTheDeletionOfItsConsumer(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	first := mustPublish(t, b, version("db", "1"), 0)
	c := consume(t, b, ConsumeOptions{})
	c.next().Done(t.Context(), nil)
	drained(t, b)
	testkit.Must(t, s.jetstream().DeleteConsumer(t.Context(), events.StreamChanges, "actuator"))
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

// Who may create consumers of the stream may change this one, and its reader would not notice.
func TestAConsumerThatIsChangedWhileItIsReadIsRepaired(t *testing.T) {
	tests := []struct {
		name   string
		change func(*jetstream.ConsumerConfig)
	}{
		{"paused", func(c *jetstream.ConsumerConfig) { c.PauseUntil = new(time.Now().Add(time.Hour)) }},
		{"headers alone", func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true }},
		{"other subjects", func(c *jetstream.ConsumerConfig) { c.FilterSubject, c.FilterSubjects = "keyturn.v1.other.>", nil }},
		{"late redeliveries", func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.BackOff = 3, []time.Duration{time.Hour} }},
	}
	s := sharedServer(t)
	b := s.bus()
	b.guardInterval = 50 * time.Millisecond
	js := s.jetstream()
	c := consume(t, b, ConsumeOptions{})
	mustPublish(t, b, version("db", "1"), 0)
	c.next().Done(t.Context(), nil)
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			consumer, err := js.Consumer(t.Context(), events.StreamChanges, "actuator")
			testkit.Must(t, err)
			config := consumer.CachedInfo().Config
			test.change(&config)
			testkit.Must(t, errIn(js.UpdateConsumer(t.Context(), events.StreamChanges, config)))
			name, number, last, at := fmt.Sprintf("web%d", i), 0, uint64(0), time.Time{}
			testkit.Eventually(t, "a change is delivered", func() bool {
				// A server may pass over what comes while the filter leaves it out.
				if number == 0 || test.name == "other subjects" && time.Since(at) > 10*time.Second {
					number, at = number+1, time.Now()
					last = mustPublish(t, b, version(name, fmt.Sprint(number)), last)
				}
				select {
				case d := <-c.deliveries:
					d.Done(t.Context(), nil)
					return d.Change.Source.Name == name
				default:
					return false
				}
			})
		})
	}
}

func TestConsumeRefusesAConsumerThatCannotBeAsItHasToBe(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	config := jetstream.ConsumerConfig{Durable: "actuator", AckPolicy: jetstream.AckNonePolicy}
	testkit.Must(t, errIn(s.jetstream().CreateConsumer(t.Context(), events.StreamChanges, config)))
	err := b.Consume(t.Context(), ConsumeOptions{Durable: "actuator"}, func(context.Context, *Delivery) {})
	if !errors.Is(err, errConsumer) || !strings.Contains(err.Error(), "actuator of CHANGES: ack_policy is AckNone, want AckExplicit") {
		t.Errorf("got %v", err)
	}
	stream := Declared(1)[1]
	stream.ConsumerLimits.MaxAckPending = 100
	testkit.Must(t, errIn(s.jetstream().UpdateStream(t.Context(), stream)))
	err = b.ConsumeOutcomes(t.Context(), ConsumeOptions{Durable: "notify", MaxAckPending: 256}, func(context.Context, *Delivery) {})
	const limit = "notify of HISTORY: max_ack_pending has to be 256: nats: API error: code=400 err_code=10121 description=consumer max ack pending exceeds system limit of 100"
	if !errors.Is(err, errConsumer) || !strings.Contains(err.Error(), limit) {
		t.Errorf("got %v, want both numbers", err)
	}
	if err := b.Consume(t.Context(), ConsumeOptions{}, nil); err == nil {
		t.Error("a consumer without a name is taken")
	}
}
