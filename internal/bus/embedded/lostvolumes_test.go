package embedded

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestAServerNoticesThatItIsCutOffFromMostOthers(t *testing.T) {
	testkit.Slow(t)
	t.Parallel() // most of it is waiting for elections
	r := newReplicas(t)
	for _, s := range r.servers {
		r.start(s)
	}
	for _, s := range r.servers {
		r.declare(s)
		r.awaitReady(s)
	}
	first := r.servers[0]
	says := func(want string) {
		t.Helper()
		var last string
		testkit.Await(t, "the first server says "+want, func(ctx context.Context) bool {
			_, last = first.readiness(ctx)
			return strings.Contains(last, want)
		}, func() string { return last })
	}
	r.vanish(r.servers[1])
	r.cluster(r.asking(), events.StreamChanges) // The other two have a leader.
	says("[+]majority ok")
	r.vanish(r.servers[2])
	says("[-]majority: the embedded nats server has no contact with most servers of its cluster")
	r.resume(r.servers[1])
	r.resume(r.servers[2])
	says("[+]majority ok")
}

func TestThreeServersStartOnTheVolumeOfASingleOne(t *testing.T) {
	testkit.Slow(t)
	t.Parallel() // most of it is waiting for elections
	r := newReplicas(t)
	single, err := Start(Options{StoreDir: r.servers[0].StoreDir}, nil)
	must(t, err)
	connection, err := bus.Connect(t.Context(), bus.ConnectOptions{Cluster: "blue"}, single.ClientOption())
	must(t, err)
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	must(t, err)
	must(t, bus.Declare(t.Context(), js, 1))
	before, err := bus.Open(t.Context(), connection, "blue", nil)
	must(t, err)
	for i := range 5 {
		change := numbered(i)
		natstest.Publish(t, func() error {
			_, err := before.PublishChange(t.Context(), change, 0)
			return err
		})
	}
	connection.Close()
	single.Shutdown()

	for _, s := range r.servers {
		r.start(s)
	}
	for _, s := range r.servers {
		r.declare(s)
		r.awaitReady(s)
	}
	watcher := r.bus("watcher")
	f := newTraffic()
	for i := range 5 {
		f.publish(t.Context(), watcher, numbered(100+i))
	}
	for _, s := range r.servers {
		r.current(s)
	}
	consumer := r.bus("actuator")
	testkit.Run(t, "consumer", func(ctx context.Context) error {
		return consumer.Consume(ctx, bus.ConsumeOptions{Durable: "actuator-blue"}, f.receive)
	})
	testkit.Eventually(t, "what the cluster accepted arrives", f.allArrived)
	f.check(t, consumer)

	// As a rolling update does.
	for _, s := range r.servers {
		must(t, s.process.Stop(testkit.Patience))
		r.start(s)
		t.Logf("%s was ready %s after it was stopped", s.name, r.awaitReady(s).Round(time.Millisecond))
		r.current(s)
	}
	f.check(t, consumer)

	// Two volumes are lost at once.
	for _, s := range r.servers[:2] {
		r.loseVolume(s)
	}
	for _, s := range r.servers[:2] {
		r.start(s)
	}
	for _, s := range r.servers {
		r.awaitReady(s)
		r.current(s)
	}
	f.check(t, consumer)
}
