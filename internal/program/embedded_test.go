package program

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/bus/embedded"
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
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// operated returns the address of a NATS with the streams, as operated separately, and the operator's connection.
func operated(t *testing.T) (url string, owner jetstream.JetStream) {
	t.Helper()
	url = natstest.Account(t)
	operator, err := nats.Connect(url, nats.Timeout(testkit.Patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(operator.Close)
	return url, jetstreamOf(t, operator)
}

// historyWithLimit is HISTORY with a limit that drops all but the last event of each subject.
func historyWithLimit() jetstream.StreamConfig {
	altered := bus.Declared(1)[1]
	altered.MaxMsgsPerSubject = 1
	return altered
}

func TestTheActuatorRepairsTheStreamsOfItsEmbeddedServer(t *testing.T) {
	a := NewActuator("test")
	a.Embed, a.Embedded.StoreDir = true, testkit.StoreDir(t)
	var log testkit.Log
	js := connected(t, a, &log)
	if _, err := js.UpdateStream(t.Context(), historyWithLimit()); err != nil {
		t.Fatal(err)
	}
	testkit.Await(t, "the limit is gone", func(ctx context.Context) bool {
		stream, err := js.Stream(ctx, events.StreamHistory)
		return err == nil && stream.CachedInfo().Config.MaxMsgsPerSubject == -1
	}, log.String)
}

func TestTheActuatorWarnsOfTheStreamsOfAnOperator(t *testing.T) {
	url, owner := operated(t)
	a := NewActuator("test")
	a.Process.NATS.URL = url
	var log testkit.Log
	connected(t, a, &log)
	if _, err := owner.UpdateStream(t.Context(), historyWithLimit()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the actuator says which field is wrong", func() bool {
		return strings.Contains(log.String(), "HISTORY: max_msgs_per_subject is 1, want -1")
	}, log.String)
}

// The streams of an earlier run are altered, as anybody with the actuator's NATS user can do.
func TestTheActuatorStartsWithWhatAServerDoesNotTakeBackAndSaysWhatToDo(t *testing.T) {
	a := NewActuator("test")
	a.Embed, a.Embedded.StoreDir, a.Embedded.Replicas = true, testkit.StoreDir(t), 1
	server, err := embedded.Start(embedded.Options{StoreDir: a.Embedded.StoreDir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	operator, err := nats.Connect("", server.ClientOption(), nats.Timeout(testkit.Patience))
	if err != nil {
		t.Fatal(err)
	}
	js := jetstreamOf(t, operator)
	altered := bus.Declared(1)[2]
	altered.AllowMsgTTL = true
	if err = bus.Declare(t.Context(), js, 1); err == nil {
		_, err = js.UpdateStream(t.Context(), altered)
	}
	if err != nil {
		t.Fatal(err)
	}
	operator.Close()
	server.Shutdown()
	var log testkit.Log
	connected(t, a, &log)
	testkit.Eventually(t, "the log says what is wrong, and what to do", func() bool {
		got := log.String()
		return strings.Contains(got, "allow_msg_ttl") && strings.Contains(got, "delete the claims of its volumes")
	}, log.String)
}
