package events

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

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
	c := consume(t, b, ConsumeOptions{ForgetAfter: time.Hour})
	mustPublish(t, b, version("web", "1"), 0)
	c.next().Done(t.Context(), nil)
	consumer, err := js.Consumer(t.Context(), StreamChanges, "actuator")
	if err != nil {
		t.Fatal(err)
	}
	if info := consumer.CachedInfo().Config; info.MaxDeliver != -1 || info.InactiveThreshold != time.Hour || !slices.Equal(info.FilterSubjects, SourceFilters(testCluster)) {
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
