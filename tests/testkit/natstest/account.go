package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest/shared"
)

// Account returns the address of an account with the project's streams, which the test has for itself. Who connects to the address is the account's
// user. The account is on the server that the tests of a package share; the package's TestMain must be [Main].
func Account(t testing.TB) (url string) {
	t.Helper()
	url = shared.Account(t)
	connection, js := connect(t, url)
	defer connection.Close()
	testkit.Must(t, bus.Declare(t.Context(), js, bus.Declared(1)))
	return url
}

// Streams declares the project's streams for the test alone, and returns a connection to them. They are in an account if the package's TestMain is
// [Main], otherwise on a server of the test's own.
func Streams(t testing.TB) (connection *nats.Conn, js jetstream.JetStream) {
	t.Helper()
	if shared.IsMain() {
		connection, js = connect(t, Account(t))
	} else {
		s := Start(t, Options{})
		s.Declare()
		connection, js = connect(t, s.URL(), nats.InProcessServer(s.server))
	}
	t.Cleanup(connection.Close)
	return connection, js
}

// Buses returns the buses of several clusters on the same streams, which the test has for itself: see [Streams].
func Buses(t testing.TB, clusters ...string) []*bus.Bus {
	t.Helper()
	connection, _ := Streams(t)
	buses := make([]*bus.Bus, len(clusters))
	for i, cluster := range clusters {
		var err error
		if buses[i], err = bus.Open(t.Context(), connection, cluster, nil); err != nil {
			t.Fatal(err)
		}
	}
	return buses
}

// connect connects to a server. While the disk is busy, creating a stream can take longer than the library waits for an answer. A
// request waits for half the patience of a test, so that a poll repeats one that is lost.
func connect(t testing.TB, url string, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	connection, err := nats.Connect(url, append([]nats.Option{nats.Timeout(startTimeout)}, options...)...)
	testkit.Must(t, err)
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	testkit.Must(t, err)
	return connection, js
}
