package tests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
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

// mostAtOnce returns how many Deployments were being rolled out at once since a resourceVersion, by what etcd has stored of them.
func (r *rig) mostAtOnce(since int64) int {
	r.Helper()
	newest, err := plane.NewestRevision(r.Context(), "deployments", r.namespace)
	if err != nil {
		r.Fatal(err)
	}
	inProgress, most := map[string]bool{}, 0
	allRead := errors.New("all revisions are read")
	err = plane.Revisions(r.Context(), "deployments", r.namespace, since, func(revision testbed.Revision) error {
		if d, is := revision.Object.(*appsv1.Deployment); is {
			if inProgress[revision.Name] = true; complete(d) {
				delete(inProgress, revision.Name)
			}
			most = max(most, len(inProgress))
		}
		if revision.Version >= newest {
			return allRead
		}
		return nil
	})
	if !errors.Is(err, allRead) {
		r.Fatal(err)
	}
	return most
}

// deferred waits until so many workloads are held for a window, and returns until when, as they are told.
func (r *rig) deferred(count int) map[string]time.Time {
	r.Helper()
	moments := map[string]time.Time{}
	r.eventually("all are deferred", func(context.Context) bool {
		for _, outcome := range r.told(events.VerbHeld) {
			_, until, _ := strings.Cut(outcome.Message, ": until ")
			until, _, _ = strings.Cut(until, ": ")
			if at, err := time.Parse(time.RFC3339, until); err == nil && outcome.Reason == "window-closed" {
				moments[outcome.Workload.Name] = at
			}
		}
		return len(moments) >= count
	})
	return moments
}

// The test does not run beside others: it kills the API server that they share.
func TestWorkloadsDeferredOverARestartOfEverythingRollOnceWithTheLastContentWhenTheirWindowOpens(t *testing.T) {
	const limit = 40
	size := 4 * limit
	if testkit.IsNightly() {
		size = 500
	}
	n := startOutsideNATS(t)
	r := newRig(t, programs.Options{NATSURL: n.URL()})
	r.fleetOf(1, size, ownSecret)
	r.eventually("all pods are available", func(ctx context.Context) bool {
		all, err := r.client.AppsV1().Deployments(r.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(all.Items, func(d appsv1.Deployment) bool { return d.Status.AvailableReplicas == 0 })
	})
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
	r.awaitRecords()
	before := r.generations()
	r.rotate(size, ownSecret)
	moments := r.deferred(size)
	distinct := map[time.Time]bool{}
	for name, at := range moments {
		distinct[at] = true
		if at.Before(opening) || at.After(opening.Add(3*time.Minute)) {
			t.Errorf("%s is told that it waits until %s, want three minutes from %s", name, at, opening)
		}
	}
	if len(distinct) < 50 {
		t.Errorf("they are to begin at %d moments, want that they are spread over three minutes", len(distinct))
	}

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
	r.eventually("the watcher has told of the last content", func(context.Context) bool {
		last := events.Source{Kind: events.KindSecret, Name: ownSecret(size - 1)}
		return r.lastChange(last).ResourceVersion == r.source(last.Kind, last.Name).GetResourceVersion()
	})
	r.quiet()

	closed, err := plane.NewestRevision(t.Context(), "deployments", r.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if rolled := r.tally().since(tallyOf(before)); len(rolled) > 0 {
		t.Fatalf("rolled before the window opens: %v", rolled)
	}
	clock.goTo(opening.Add(5 * time.Minute))
	r.eachRolledOnce(before)
	for _, i := range []int{0, size / 2, size - 1} {
		r.hasRolledForTheLast("deployment/app-"+strconv.Itoa(i), events.Source{Kind: events.KindSecret, Name: ownSecret(i)})
	}
	r.eachToldOnce(before)
	for _, outcome := range r.told(events.VerbStarted) {
		if at := moments[outcome.Workload.Name]; outcome.Time.Before(at) {
			t.Errorf("%s was rolled at %s, before %s, of which it was told", outcome.Workload, outcome.Time, at)
		}
	}
	if most := r.mostAtOnce(closed); most != limit {
		t.Errorf("%d rollouts were in progress at once, want %d, the limit", most, limit)
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
