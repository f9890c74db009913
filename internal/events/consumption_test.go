package events

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

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
		lag, err := b.Lag(ctx, "actuator")
		return err == nil && lag.Pending == 0 && lag.AckPending == 10
	})
	cancel()
	must(t, testkit.Receive(t, "the first consumer ends", result))
	second := consume(t, b, ConsumeOptions{AckWait: time.Hour})
	for range 10 {
		second.next().Done(t.Context(), nil)
	}
	drained(t, b)
}

func TestConsumeResumesAsSoonAsItIsConnected(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	log := &testkit.Log{}
	b.logger = log.Logger()
	var connected atomic.Bool
	b.retry = func() wait.Backoff {
		if connected.Swap(true) { // The server may be silent yet when it has just started.
			return wait.Backoff{Duration: 100 * time.Millisecond, Steps: 1}
		}
		return wait.Backoff{Duration: time.Hour, Steps: 1}
	}
	var c *consumer
	s.restart(func() {
		c = consume(t, b, ConsumeOptions{}) // one that consumes already survives the restart without another attempt
		testkit.Eventually(t, "the consumer waits for its next attempt", func() bool {
			return strings.Contains(log.String(), "consumer interrupted")
		})
	})
	testkit.Eventually(t, "a change is published", func() bool {
		_, err := b.PublishChange(t.Context(), version("db", "1"), 0)
		return err == nil
	})
	c.next().Done(t.Context(), nil)
}

func TestOnlySilencesInARowReconnect(t *testing.T) {
	b := sharedServer(t).bus()
	reconnected := b.js.Conn().StatusChanged(nats.RECONNECTING)
	changes := b.newConsumption(b.changes, ConsumeOptions{Durable: "actuator"}, nil)
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
	outcomes, err := b.outcomeConsumption(ConsumeOptions{Durable: "notify"}, nil)
	must(t, err)
	silent := 0
	for range 2 * silences {
		silent = outcomes.afterSilence(t.Context(), silent, 4*time.Second, jetstream.ErrNoHeartbeat)
	}
	if silent != 2*silences {
		t.Errorf("counted %d silences of %d: it has reconnected", silent, 2*silences)
	}
}
