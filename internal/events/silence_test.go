package events_test

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
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

// wire forwards TCP connections to a server, until it is cut.
type wire struct {
	net.Listener
	dial  func() (net.Conn, error)
	ended sync.WaitGroup

	mu   sync.Mutex
	open []*stretch
}

// stretch is one connection of a wire.
type stretch struct {
	ends [2]net.Conn
	cut  atomic.Bool
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, dial: func() (net.Conn, error) { return new(net.Dialer).DialContext(t.Context(), "tcp", server) }}
	w.ended.Go(w.accept)
	t.Cleanup(func() {
		listener.Close()
		w.mu.Lock()
		for _, s := range w.open {
			s.ends[0].Close()
			s.ends[1].Close()
		}
		w.mu.Unlock()
		w.ended.Wait()
	})
	return w
}

func (w *wire) accept() {
	for {
		client, err := w.Accept()
		if err != nil {
			return
		}
		server, err := w.dial()
		if err != nil {
			client.Close()
			continue
		}
		s := &stretch{ends: [2]net.Conn{client, server}}
		w.mu.Lock()
		w.open = append(w.open, s)
		w.mu.Unlock()
		w.ended.Go(func() { s.forward(client, server) })
		w.ended.Go(func() { s.forward(server, client) })
	}
}

// forward copies what it reads. Once the stretch is cut, it reads on and copies nothing, so that neither end learns of it.
func (s *stretch) forward(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if s.cut.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// cutAll makes the server vanish for the connections that are open. New ones reach it.
func (w *wire) cutAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.open {
		s.cut.Store(true)
	}
}
