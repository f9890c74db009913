package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestOnlySilencesInARowReconnect(t *testing.T) {
	b := sharedServer(t).bus()
	reconnected := b.js.Conn().StatusChanged(nats.RECONNECTING)
	changes, err := b.newConsumption(b.changes, ConsumeOptions{Durable: "actuator"})
	testkit.Must(t, err)
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
