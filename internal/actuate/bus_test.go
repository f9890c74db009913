package actuate

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
)

// busOf is a bus of the tests' cluster on a server of its own.
func busOf(t *testing.T) *events.Bus {
	t.Helper()
	return busesOf(t, testOptions().Cluster)[0]
}

// busesOf are the buses of several clusters on one server.
func busesOf(t *testing.T, clusters ...string) []*events.Bus {
	t.Helper()
	nc, _ := streamsOf(t)
	buses := make([]*events.Bus, len(clusters))
	for i, cluster := range clusters {
		var err error
		if buses[i], err = events.Open(t.Context(), nc, cluster, nil); err != nil {
			t.Fatal(err)
		}
	}
	return buses
}

// streamsOf declares the streams on a server of the test's own.
func streamsOf(t *testing.T) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	server, err := embedded.Start(embedded.Options{StoreDir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	nc, err := nats.Connect("", server.ClientOption())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Declare(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	return nc, js
}

func outcomeOf(name string) events.Outcome {
	return events.Outcome{
		Cluster: "demo", Verb: events.VerbFailed, ResourceVersion: "50", Time: written, Cause: "uid/100", Reason: "timed-out",
		Workload: events.Workload{Kind: "deployment", Namespace: "shop", Name: name, UID: "uid-" + name},
	}
}
