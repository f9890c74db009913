package embedded

import (
	"context"
	"fmt"
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
	js, err := jetstream.New(r.connect("actuator", first))
	testkit.Must(t, err)
	asked := bus.NewMajority(js)
	testkit.Run(t, "majority", func(ctx context.Context) error {
		asked.Run(ctx)
		return nil
	})
	answers := func(want bool) {
		t.Helper()
		testkit.Await(t, fmt.Sprintf("the first server answers: %t", want), func(context.Context) bool { return (asked.Lost() == nil) == want })
	}
	r.vanish(r.servers[1])
	r.cluster(r.asking(), events.StreamChanges) // The other two have a leader.
	answers(true)
	r.vanish(r.servers[2])
	answers(false)
	r.resume(r.servers[1])
	r.resume(r.servers[2])
	answers(true)
}

func TestThreeServersStartOnTheVolumeOfASingleOne(t *testing.T) {
	testkit.Slow(t)
	t.Parallel() // most of it is waiting for elections
	r := newReplicas(t)
	single, err := Start(Options{StoreDir: r.servers[0].StoreDir}, nil)
	testkit.Must(t, err)
	connection, err := bus.Connect(t.Context(), bus.ConnectOptions{Cluster: "blue"}, single.ClientOption())
	testkit.Must(t, err)
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	testkit.Must(t, err)
	testkit.Must(t, bus.Declare(t.Context(), js, bus.Declared(1)))
	before, err := bus.Open(t.Context(), connection, "blue", nil)
	testkit.Must(t, err)
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
		testkit.Must(t, s.process.Stop(testkit.Patience))
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
