package actuate

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/events/embedded"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// The servers of a stream may lose their leader at the same time as the actuators.
func TestANewLeaderReadsTheLastOutcomesWhenTheStreamAnswers(t *testing.T) {
	testkit.Slow(t)
	store := testkit.StoreDir(t)
	port, err := process.FreePort() // it stays free while the server is restarted
	if err != nil {
		t.Fatal(err)
	}
	address := process.Address(port)
	server, err := embedded.Start(embedded.Options{Listen: address, StoreDir: store}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown() })
	log := &testkit.Log{}
	options := testOptions()
	options.Logger = slog.New(slog.NewTextHandler(log, nil))
	nc, err := events.Connect(t.Context(), events.ConnectOptions{URL: server.ClientURL(), Cluster: options.Cluster, Logger: options.Logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(testkit.Patience))
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Declare(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	bus, err := events.Open(t.Context(), nc, options.Cluster, options.Logger)
	if err != nil {
		t.Fatal(err)
	}
	w := rolledAt(t, "web", written, workload.Progressing)
	started := loopOf(t, options, w).rollouts.outcomes.found(w)
	natstest.Publish(t, func() error { return errors.Join(bus.PublishOutcomes(t.Context(), started)...) })

	server.Shutdown()
	all := func(events.Outcome) bool { return true }
	var found []events.Outcome
	complete := make(chan bool, 1)
	go func() {
		complete <- resumerOf(options, bus).outcomes(t.Context(), all, func(outcome events.Outcome) { found = append(found, outcome) })
	}()
	// This takes longer than any one question may wait.
	testkit.Eventually(t, "it has asked in vain four times", func() bool {
		return strings.Count(log.String(), "last outcomes not readable; reading them again") >= 4
	}, log.String)
	if server, err = embedded.Start(embedded.Options{Listen: address, StoreDir: store}, nil); err != nil {
		t.Fatal(err)
	}
	if !testkit.Receive(t, "the last outcomes", complete, log.String) || len(found) != 1 || found[0].Revision != started.Revision {
		t.Errorf("%d outcomes are found, want the one on the stream; the log is\n%s", len(found), log)
	}
}
