package program

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// connected runs an actuator that has nothing to roll until the test ends, and returns a connection once the streams exist.
func connected(t *testing.T, a *Actuator, log *testkit.Log) jetstream.JetStream {
	t.Helper()
	a.Process.Cluster, a.Process.MetricsAddr, a.Process.HealthAddr = "prod", "127.0.0.1:0", ""
	a.guardInterval = 10 * time.Millisecond
	ready := make(chan *nats.Conn, 1)
	testkit.Run(t, "actuator", func(ctx context.Context) error {
		var connection *nats.Conn
		return run(ctx, program{Name: "actuator", Options: a.Process, Log: log, Parts: []part{{
			Role: "actuator",
			Prepare: func(*runtime) (prepared, error) {
				return prepared{Run: func(ctx context.Context, _ *bus.Bus) error {
					ready <- connection
					<-ctx.Done()
					return nil
				}}, nil
			},
			Connect: func(ctx context.Context, r *runtime) (_ *nats.Conn, err error) {
				connection, err = a.connect(ctx, r)
				return connection, err
			},
		}}})
	})
	return jetstreamOf(t, testkit.Receive(t, "the beginning of the actuator's work", ready, log.String))
}

func jetstreamOf(t *testing.T, connection *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience))
	testkit.Must(t, err)
	return js
}

// historyWithLimit is HISTORY with a limit that drops all but the last event of each subject.
func historyWithLimit() jetstream.StreamConfig {
	altered := bus.Declared(1)[1]
	altered.MaxMsgsPerSubject = 1
	return altered
}

func TestTheActuatorRepairsTheStreamsOfItsEmbeddedServer(t *testing.T) {
	a := NewActuator("test")
	a.Embedded.StoreDir = testkit.StoreDir(t)
	var log testkit.Log
	js := connected(t, a, &log)
	if _, err := js.UpdateStream(t.Context(), historyWithLimit()); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the limit is gone", func(ctx context.Context) bool {
		stream, err := js.Stream(ctx, events.StreamHistory)
		return err == nil && stream.CachedInfo().Config.MaxMsgsPerSubject > 1
	}, log.String)
}

// The first claim is what anybody with the key of the watcher's NATS user can publish.
func TestNobodyTakesTheNameOfAClusterOnTheNATSOfItsActuator(t *testing.T) {
	a := NewActuator("test")
	a.Embedded.StoreDir = testkit.StoreDir(t)
	var log testkit.Log
	b, err := bus.Open(t.Context(), connected(t, a, &log).Conn(), "prod", nil)
	testkit.Must(t, err)
	natstest.Publish(t, func() error { return b.Claim(t.Context(), "uid-of-nobody", "") })
	for name, do := range map[string]identifier{"the actuator": checkName, "the watcher": claimName} {
		if _, err := answered(t, do, identity{client: cluster("uid-one")}, b); err != nil {
			t.Errorf("%s: got %v, want that it goes on", name, err)
		}
	}
}

func TestTheActuatorWarnsOfTheStreamsOfAnOperator(t *testing.T) {
	url := natstest.Account(t)
	operator, err := nats.Connect(url, nats.Timeout(testkit.Patience))
	testkit.Must(t, err)
	t.Cleanup(operator.Close)
	owner := jetstreamOf(t, operator)
	a := NewActuator("test")
	a.Process.NATS.URL = url
	var log testkit.Log
	connected(t, a, &log)
	if _, err := owner.UpdateStream(t.Context(), historyWithLimit()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the actuator says which field is wrong", func() bool {
		return strings.Contains(log.String(), "HISTORY: max_msgs_per_subject is 1, want 50000")
	}, log.String)
}
