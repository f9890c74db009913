package tests

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/actuate"
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
	bus := r.connect()
	stop = testkit.Run(r.T, "actuator", func(ctx context.Context) error { return actuator.Run(ctx, bus) })
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("log of the actuator:\n%s", log.String())
		}
	})
	r.eventually("the actuator knows the workloads", func(context.Context) bool { return actuator.Ready() == nil })
	return stop
}
