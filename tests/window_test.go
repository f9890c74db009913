package tests

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
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

// runAt runs an actuator with a clock, until the returned function is called. It uses the NATS of the programs, and no leader election.
func (r *rig) runAt(clock *shiftedClock, set func(*actuate.Options)) (stop func()) {
	r.Helper()
	var log testkit.Log
	options := actuate.DefaultOptions()
	options.Cluster, options.Namespaces, options.LeaderElect = r.programs.Cluster(), []string{r.namespace}, false
	options.Settle, options.Client, options.Now = 50*time.Millisecond, r.client, clock.now
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

// mostAtOnce returns how many rollouts were in progress at once, as their outcomes say, of workloads for which counts returns true.
func (r *rig) mostAtOnce(counts func(events.Workload) bool) int {
	r.Helper()
	type edge struct {
		at    time.Time
		grows int
	}
	var edges []edge
	for _, outcome := range r.outcomes() {
		switch {
		case !counts(outcome.Workload):
		case outcome.Verb == events.VerbStarted:
			edges = append(edges, edge{outcome.Time, 1})
		case outcome.Verb == events.VerbCompleted:
			edges = append(edges, edge{outcome.Time, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), a.grows-b.grows) })
	now, most := 0, 0
	for _, e := range edges {
		now += e.grows
		most = max(most, now)
	}
	return most
}

func TestWorkloadsThatWaitForAWindowRollOnceWithTheLastContentWhenItOpens(t *testing.T) {
	const size, withPods, limit = 500, 12, 2
	n := startOutsideNATS(t)
	r := newRig(t, programs.Options{NATSURL: n.URL()})
	r.fleet(size, ownSecret)
	r.secret("shared", map[string]string{"password": "before"})
	for i := range withPods {
		r.deploy(r.reading("pods-"+strconv.Itoa(i), "shared", 1, nil))
	}
	// The window opens in six hours or a little less.
	opening := time.Now().UTC().Add(6 * time.Hour).Truncate(time.Hour)
	clock := &shiftedClock{}
	run := func() func() {
		return r.runAt(clock, func(o *actuate.Options) {
			o.Window, o.MaxRollouts = fmt.Sprintf("0 %d * * * for 1h", opening.Hour()), limit
		})
	}
	stop := run()
	r.startWatcher()
	before := r.generations()
	r.rotate(size, ownSecret)
	r.secret("shared", map[string]string{"password": "after"})
	deferred := func(times int) func(context.Context) bool {
		return func(context.Context) bool {
			told := 0
			for _, outcome := range r.told(events.VerbHeld) {
				if outcome.Reason == "window-closed" {
					told++
				}
			}
			return told >= times
		}
	}
	r.eventually("all are deferred", deferred(size+withPods))

	// Everything restarts, and everything changes again while NATS is away.
	stop()
	stop = run()
	n.Stop()
	for i := range size {
		r.secret(ownSecret(i), map[string]string{"password": "last"})
	}
	r.secret("shared", map[string]string{"password": "last"})
	n.Start()
	r.eventually("the watcher has told of the last content", func(context.Context) bool {
		last := events.Source{Kind: events.KindSecret, Name: "shared"}
		return r.lastChange(last).ResourceVersion == r.source(last.Kind, last.Name).GetResourceVersion()
	})
	stop()
	run()
	r.eventually("all are in flight", func(ctx context.Context) bool {
		lag, err := r.connect().Lag(ctx, "actuator-"+r.programs.Cluster())
		return err == nil && lag.AckPending >= size+1 && lag.Pending == 0
	})
	if rolled := r.tally().since(tallyOf(before)); len(rolled) > 0 {
		t.Fatalf("rolled before the window opens: %v", rolled)
	}

	clock.goTo(opening.Add(5 * time.Minute))
	r.eachRolledOnce(before)
	for _, i := range []int{0, size / 2, size - 1} {
		r.hasRolledForTheLast("deployment/app-"+strconv.Itoa(i), events.Source{Kind: events.KindSecret, Name: ownSecret(i)})
	}
	for i := range withPods {
		r.hasRolledForTheLast("deployment/pods-"+strconv.Itoa(i), events.Source{Kind: events.KindSecret, Name: "shared"})
	}
	r.eachToldOnce(before)
	if most := r.mostAtOnce(func(w events.Workload) bool { return len(w.Name) > 4 && w.Name[:5] == "pods-" }); most > limit {
		t.Errorf("%d rollouts were in progress at once, want at most %d", most, limit)
	}
}

// tallyOf returns how often Deployments were written as a tally.
func tallyOf(generations map[string]int64) tally {
	all := tally{}
	for name, writes := range generations {
		all["deployment/"+name] = writes
	}
	return all
}
