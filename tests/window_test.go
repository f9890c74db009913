package tests

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// shiftedClock is the time of an actuator, which a test may have go forward.
type shiftedClock struct{ ahead atomic.Int64 }

func (c *shiftedClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// goTo has the clock show a time.
func (c *shiftedClock) goTo(at time.Time) { c.ahead.Store(int64(time.Until(at))) }

// pass has a time pass by the clock.
func (c *shiftedClock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// runAt runs an actuator with a clock, until the returned function is called. It has the account of the actuator, uses the NATS of the programs, and
// no leader election. No rollout times out there because the clock goes forward.
func (r *rig) runAt(clock *shiftedClock, set func(*actuate.Options)) (stop func()) {
	r.Helper()
	var log testkit.Log
	options := actuate.DefaultOptions()
	options.Cluster, options.Namespaces, options.LeaderElect = r.programs.Cluster(), []string{r.namespace}, false
	options.Settle, options.Client, options.Now = 50*time.Millisecond, clientOf(r.T, actuatorAccount), clock.now
	options.RolloutTimeout = 24 * time.Hour
	options.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	options.Tracer, options.Meter = tracenoop.NewTracerProvider().Tracer(""), noop.NewMeterProvider().Meter("")
	set(&options)
	actuator, err := actuate.New(options)
	if err != nil {
		r.Fatal(err)
	}
	b := r.connect()
	stop = testkit.Run(r.T, "actuator", func(ctx context.Context) error { return actuator.Run(ctx, b) })
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("log of the actuator:\n%s", log.String())
		}
	})
	r.eventually("the actuator knows the workloads", func(context.Context) bool { return actuator.Ready() == nil })
	return stop
}

// The test does not run beside others: it kills the API server that they share.
func TestWorkloadsDeferredOverARestartOfEverythingRollOnceWithTheLastContentWhenTheirWindowOpens(t *testing.T) {
	const size = 20
	n := startOutsideNATS(t)
	r := newRig(t, programs.Options{NATSURL: n.URL()})
	r.fleet(size, ownSecret)
	// The window opens in six hours or a little less.
	opening := time.Now().UTC().Add(6 * time.Hour).Truncate(time.Hour)
	clock := &shiftedClock{}
	run := func() func() {
		return r.runAt(clock, func(o *actuate.Options) { o.Window = fmt.Sprintf("0 %d * * * for 1h", opening.Hour()) })
	}
	stop := run()
	r.startWatcher()
	r.awaitRecords()
	before := r.generations()
	r.rotate(size, ownSecret)
	r.awaitTold(events.VerbHeld, size)

	// The API server, NATS and the actuator are down together, and everything changes again before NATS is back.
	plane.KillAPIServer()
	n.Stop()
	stop()
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Revive(); err != nil {
		t.Fatal(err)
	}
	for i := range size {
		r.secret(ownSecret(i), map[string]string{"password": "last"})
	}
	n.Start()
	run()
	last := events.Source{Kind: events.KindSecret, Name: ownSecret(size - 1)}
	r.eventually("the watcher has told of the last content", func(context.Context) bool {
		return r.lastChange(last).ResourceVersion == r.source(last.Kind, last.Name).GetResourceVersion()
	})
	r.quiet()
	if now := r.generations(); !maps.Equal(now, before) {
		t.Fatalf("rolled before the window opens: generations: got %v, want %v", now, before)
	}
	clock.goTo(opening.Add(5 * time.Minute))
	r.eachRolledOnce(before)
	for i := range size {
		r.hasRolledForTheLast(fmt.Sprintf("deployment/app-%d", i), events.Source{Kind: events.KindSecret, Name: ownSecret(i)})
	}
}
