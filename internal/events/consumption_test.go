package events

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
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

// cutDialer makes connections that can be cut, as if the server vanished for them.
type cutDialer struct {
	*testing.T
	mu   sync.Mutex
	open []*cutConn
}

func (d *cutDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(d.Context(), network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, &cutConn{Conn: conn})
	return d.open[len(d.open)-1], nil
}

// cut cuts the connections that are open. New ones reach the server.
func (d *cutDialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.open {
		conn.isCut.Store(true)
	}
}

type cutConn struct {
	net.Conn
	isCut atomic.Bool
}

func (c *cutConn) Read(p []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(p); err != nil || !c.isCut.Load() {
			return n, err
		}
	}
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.isCut.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// The connection has no pings, as if the server answered them and nothing else: one that is cut off from the others of its cluster.
func TestAChangeIsDeliveredSoonAfterTheServerVanished(t *testing.T) {
	testkit.Slow(t)
	s, dialer := sharedServer(t), &cutDialer{T: t}
	nc, err := Connect(t.Context(), ConnectOptions{URL: s.url(), Cluster: testCluster}, nats.SetCustomDialer(dialer), nats.PingInterval(time.Hour))
	must(t, err)
	t.Cleanup(nc.Close)
	far, err := Open(t.Context(), nc, testCluster, nil)
	must(t, err)
	// The server delivers to the connection that is cut, and again after the ack wait.
	c := consume(t, far, ConsumeOptions{AckWait: 10 * time.Second})
	near := s.bus()
	mustPublish(t, near, version("before", "1"), 0)
	c.next().Done(t.Context(), nil)
	dialer.cut()
	mustPublish(t, near, version("after", "1"), 0)
	for name := ""; name != "after"; {
		d := c.next()
		name = d.Change.Source.Name
		d.Done(t.Context(), nil)
	}
}
