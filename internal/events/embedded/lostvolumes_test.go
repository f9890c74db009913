package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestAProgramWaitsUntilMostServersRun(t *testing.T) {
	testkit.Slow(t)
	t.Parallel() // most of it is waiting for elections
	r := newReplicas(t)
	first := r.servers[0]
	r.start(first)
	var why string
	testkit.Await(t, "the first server says that it is alone", func(ctx context.Context) bool {
		_, why = first.readiness(ctx)
		return strings.Contains(why, "[-]jetstream: jetstream: JetStream ")
	}, func() string { return why })
	var log testkit.Log
	opened, connection := make(chan error, 1), r.connect("watcher", first)
	go func() {
		var err error
		for again := true; again; again = err != nil && strings.Contains(err.Error(), "does not exist") {
			// It ends, and its pod is restarted, when servers that have a leader take longer to create the streams than it waits.
			_, err = events.Open(t.Context(), connection, "blue", slog.New(slog.NewTextHandler(&log, nil)))
		}
		opened <- err
	}()
	var declaring sync.WaitGroup
	declaring.Go(func() { r.declare(first) })
	testkit.Eventually(t, "the program says that it waits", func() bool { return strings.Contains(log.String(), "streams are not declared yet") })
	r.start(r.servers[1])
	r.start(r.servers[2])
	declaring.Wait()
	if err := testkit.Receive(t, "the program has opened the streams", opened, log.String); err != nil {
		t.Error(err)
	}
	for _, s := range r.servers {
		r.awaitReady(s)
	}
}

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
	connection, err := events.Connect(t.Context(), events.ConnectOptions{Cluster: "blue"}, single.ClientOption())
	must(t, err)
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	must(t, err)
	must(t, events.Declare(t.Context(), js, 1))
	before, err := events.Open(t.Context(), connection, "blue", nil)
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
		return consumer.Consume(ctx, events.ConsumeOptions{Durable: "actuator-blue"}, f.receive)
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
}

func TestNothingIsLostWhileEachOfThreeServersLosesItsVolumeInTurn(t *testing.T) {
	testkit.Slow(t)
	r := newReplicas(t)
	began := time.Now()
	for _, s := range r.servers {
		r.start(s)
	}
	var declaring sync.WaitGroup
	for _, s := range r.servers {
		declaring.Go(func() { r.declare(s) })
	}
	declaring.Wait()
	for _, s := range r.servers {
		r.awaitReady(s)
	}
	t.Logf("the first start took %s", time.Since(began).Round(time.Millisecond))

	f := newTraffic()
	consumer := r.bus("actuator")
	testkit.Run(t, "consumer", func(ctx context.Context) error {
		// As in the actuator: messages that a lost server sent without a receiver are redelivered after this time.
		return consumer.Consume(ctx, events.ConsumeOptions{Durable: "actuator-blue", AckWait: 7 * time.Second}, f.receive)
	})
	watcher := r.bus("watcher")
	stop := testkit.Run(t, "watcher", func(ctx context.Context) error { f.generate(ctx, watcher); return nil })

	arrive := func(more int) {
		t.Helper()
		before := f.arrived()
		testkit.Eventually(t, fmt.Sprintf("%d more changes arrive", more), func() bool { return f.arrived() >= before+more })
	}
	arrive(20)
	_, arrived := f.longest()
	t.Logf("without a loss: the slowest change arrived after %s", arrived.Round(time.Millisecond))
	for _, loss := range []struct {
		name   string
		server func() *replica
		lose   func(*replica)
	}{
		{"the first is killed", func() *replica { return r.servers[0] }, r.loseVolume},
		{"the second is killed", func() *replica { return r.servers[1] }, r.loseVolume},
		{"the third is killed", func() *replica { return r.servers[2] }, r.loseVolume},
		{"the leader vanishes", r.leader, r.vanish},
	} {
		s := loss.server()
		loss.lose(s)
		arrive(30)
		// An election of JetStream takes 4 to 9 seconds, a publication is repeated 3 to 6 seconds after it was lost, and the event is redelivered
		// after 7 seconds or the silence of its server, which takes 10. A slow disk delays the votes.
		testkit.Eventually(t, "all changes that were made so far arrive without the server", f.arrivalOfAll())
		r.loseVolume(s)
		r.start(s)
		ready := r.awaitReady(s)
		r.current(s)
		r.declare(s)
		arrive(20)
		published, arrived := f.longest()
		t.Logf("%s: the slowest change was published after %s and arrived after %s; with an empty volume %s was ready after %s",
			loss.name, published.Round(time.Millisecond), arrived.Round(time.Millisecond), s.name, ready.Round(time.Millisecond))
		if log := s.process.Output(); strings.Contains(log, "restarting jetstream") {
			t.Errorf("%s: jetstream was restarted while it caught up", loss.name)
		}
	}
	stop()
	testkit.Eventually(t, "all changes arrive", f.allArrived)
	f.check(t, consumer)

	for _, s := range r.servers[:2] {
		r.loseVolume(s)
	}
	for _, s := range r.servers[:2] {
		r.start(s)
	}
	for _, s := range r.servers {
		t.Logf("two volumes lost at once: %s was ready after %s", s.name, r.awaitReady(s).Round(time.Millisecond))
		r.current(s)
	}
	f.check(t, consumer)
}
