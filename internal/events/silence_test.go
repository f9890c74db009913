package events_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestAChangeIsDeliveredSoonAfterTheServerVanished(t *testing.T) {
	testkit.Slow(t)
	direct := natstest.Account(t)
	address, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	wire := newWire(t, address.Host)
	address.Host = wire.Addr().String()
	log := &testkit.Log{}
	// Without pings, as if the server answered them and nothing else: one that is cut off from the others of its cluster.
	near, far := openBus(t, direct, log), openBus(t, address.String(), log, nats.PingInterval(time.Hour))

	deliveries, result := make(chan *events.Delivery, 10), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	// As the actuator does. The server delivers to the connection that is cut, and again after this time.
	options := events.ConsumeOptions{Durable: "actuator", AckWait: 10 * time.Second}
	go func() {
		result <- far.Consume(ctx, options, func(_ context.Context, d *events.Delivery) { deliveries <- d })
	}()
	defer func() {
		cancel()
		if err := <-result; err != nil {
			t.Error(err)
		}
	}()
	publish := func(name string) {
		t.Helper()
		change := secretChange(name)
		natstest.Publish(t, func() error {
			_, err := near.PublishChange(t.Context(), change, 0)
			return err
		})
	}
	publish("before")
	await(t, deliveries, "before", log)
	wire.cutAll()
	publish("after")
	await(t, deliveries, "after", log)
	if !strings.Contains(log.String(), "nats is silent, reconnecting") {
		t.Errorf("the log does not say why it reconnected:\n%s", log)
	}
}

// await waits for the delivery of a change of the Secret, for longer than it takes the programs and for less than it takes TCP.
func await(t *testing.T, deliveries <-chan *events.Delivery, name string, log *testkit.Log) {
	t.Helper()
	const soon = time.Minute
	for timeout := time.After(soon); ; {
		select {
		case d := <-deliveries:
			d.Done(t.Context(), nil)
			if d.Change.Source.Name == name {
				return
			}
		case <-timeout:
			t.Fatalf("the change of %s was not delivered within %s; the log is\n%s", name, soon, log)
		}
	}
}

func openBus(t *testing.T, url string, log *testkit.Log, further ...nats.Option) *events.Bus {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	nc, err := events.Connect(t.Context(), events.ConnectOptions{URL: url, Cluster: "east", Logger: logger}, further...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	bus, err := events.Open(t.Context(), nc, "east", logger)
	if err != nil {
		t.Fatal(err)
	}
	return bus
}

func secretChange(name string) events.Change {
	fingerprint := "k0a1b2c3d:" + strings.Repeat("1", 32)
	return events.Change{
		Cluster: "east", Source: events.Source{Kind: events.KindSecret, Namespace: "shop", Name: name}, Verb: events.VerbObserved,
		UID: "uid-" + name, ResourceVersion: "1", Fingerprint: fingerprint, Time: time.Now(),
		Keys: map[string]events.Key{"password": {Fingerprint: fingerprint}}, WrittenAt: time.Now().Truncate(time.Second),
	}
}
