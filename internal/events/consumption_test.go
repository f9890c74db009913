package events

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestBufferedMessagesAreNaked blocks a handler, so that messages are buffered, and lets a second consumer take over.
func TestBufferedMessagesAreNaked(t *testing.T) {
	b := sharedServer(t).bus()
	for i := range 10 {
		mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		result <- b.Consume(ctx, ConsumeOptions{Durable: "actuator", AckWait: time.Hour}, func(ctx context.Context, d *Delivery) {
			<-ctx.Done()
			d.Done(ctx, ctx.Err())
		})
	}()
	testkit.Await(t, "the first consumer has them all", func(ctx context.Context) bool {
		pending, inFlight, err := left(ctx, b, "actuator")
		return err == nil && pending == 0 && inFlight == 10
	})
	cancel()
	must(t, testkit.Receive(t, "the first consumer ends", result))
	second := consume(t, b, ConsumeOptions{AckWait: time.Hour})
	for range 10 {
		second.next().Done(t.Context(), nil)
	}
	drained(t, b)
}

func TestOnlySilencesInARowReconnect(t *testing.T) {
	b := sharedServer(t).bus()
	reconnected := b.js.Conn().StatusChanged(nats.RECONNECTING)
	changes, err := b.newConsumption(b.changes, ConsumeOptions{Durable: "actuator"})
	must(t, err)
	silent := 0
	for range 2 * silences {
		silent = changes.afterSilence(t.Context(), silent, time.Hour, jetstream.ErrNoHeartbeat)
	}
	if silent != 1 || len(reconnected) != 0 {
		t.Errorf("counted %d after a silence an hour, want 1; reconnected: %v", silent, len(reconnected) != 0)
	}
	for range silences - 1 {
		silent = changes.afterSilence(t.Context(), silent, 4*time.Second, jetstream.ErrNoHeartbeat)
	}
	if silent != 0 {
		t.Errorf("counted %d after %d silences in a row, want a reconnection", silent, silences)
	}
	testkit.Receive(t, "it reconnects", reconnected)
}

// A sink of notifications must not interrupt the actuator, whose connection it uses.
func TestConsumeOutcomesNeverReconnects(t *testing.T) {
	b := sharedServer(t).bus()
	outcomes := &consumption{bus: b, ofOutcomes: true}
	silent := 0
	for range 2 * silences {
		silent = outcomes.afterSilence(t.Context(), silent, 4*time.Second, jetstream.ErrNoHeartbeat)
	}
	if silent != 2*silences {
		t.Errorf("counted %d silences of %d: it has reconnected", silent, 2*silences)
	}
}
