package tests

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// impatient is an actuator in the process of the test, which repeats reverted rollouts after seconds instead of minutes.
type impatient struct {
	log     testkit.Log
	metrics *metric.ManualReader
}

// runImpatient runs one until the test ends. It uses the NATS of the programs, and no leader election.
func (r *rig) runImpatient(delays [plan.RevertRetries]time.Duration) *impatient {
	r.Helper()
	i := &impatient{metrics: metric.NewManualReader()}
	options := actuate.DefaultOptions()
	options.Cluster, options.Namespaces, options.LeaderElect = r.programs.Cluster(), []string{r.namespace}, false
	options.Settle, options.RevertDelays, options.Client = 50*time.Millisecond, delays, r.client
	options.Logger = slog.New(slog.NewJSONHandler(&i.log, nil))
	options.Tracer = tracenoop.NewTracerProvider().Tracer("")
	options.Meter = metric.NewMeterProvider(metric.WithReader(i.metrics)).Meter("actuate")
	actuator, err := actuate.New(options)
	if err != nil {
		r.Fatal(err)
	}
	bus := r.connect()
	testkit.Run(r.T, "actuator", func(ctx context.Context) error { return actuator.Run(ctx, bus) })
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("log of the actuator:\n%s", i.log.String())
		}
	})
	r.eventually("the actuator knows the workloads", func(context.Context) bool { return actuator.Ready() == nil })
	return i
}

// reverted returns how many Deployments the actuator does not roll any more because each rollout was reverted.
func (i *impatient) reverted(ctx context.Context, r *rig) int64 {
	r.Helper()
	var all metricdata.ResourceMetrics
	if err := i.metrics.Collect(ctx, &all); err != nil {
		r.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			gauge, ok := m.Data.(metricdata.Gauge[int64])
			if !ok || m.Name != "keyturn.workloads.reverted" {
				continue
			}
			for _, point := range gauge.DataPoints {
				if kind, _ := point.Attributes.Value("kind"); kind.AsString() == "deployment" {
					return point.Value
				}
			}
		}
	}
	return -1
}

// operated starts a watcher, an impatient actuator, and an operator that reverts rollouts of the Deployment web.
func operated(t *testing.T, strict bool, delays [plan.RevertRetries]time.Duration) (*rig, *impatient, *owner) {
	t.Helper()
	r := newRig(t, programs.Options{NATSURL: startOutsideNATS(t).URL()})
	r.secret("db", map[string]string{"password": "one"})
	r.deployOwned("web", "db")
	r.startWatcher()
	actuator := r.runImpatient(delays)
	return r, actuator, r.operate("web", strict)
}

func TestARolloutThatAnOperatorKeepsRevertingIsRepeatedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		// strict means that the operator removes Keyturn's record and count from the Deployment, too.
		strict bool
	}{
		{name: "the operator writes the spec"},
		{name: "the operator writes the spec and the annotations", strict: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, actuator, operator := operated(t, tt.strict, [...]time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond})
			before := r.tally()
			r.secret("db", map[string]string{"password": "two"})
			r.eventually("it is given up", func(ctx context.Context) bool { return actuator.reverted(ctx, r) == 1 })

			var got []string
			for _, outcome := range r.outcomes() {
				if outcome.Verb != events.VerbStarted {
					got = append(got, string(outcome.Verb)+" "+outcome.Reason+": "+outcome.Message)
				}
			}
			const by = "failed reverted: " + byOwner
			want := []string{
				by + "it is rolled again in 200ms", by + "it is rolled again in 400ms", by + "it is rolled again in 600ms",
				by + "it is not rolled again for this change",
			}
			if !slices.Equal(got, want) {
				t.Errorf("ends of the rollouts:\ngot  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
			if !tt.strict { // Then explain, which reads the workload, finds no count on it.
				explained := r.explain("deployment/web")
				if !strings.Contains(explained, "skip (reverted): another field manager undid every rollout for this change, and must "+
					"leave the keyturn.dev/* annotations on the pod template alone; the next change rolls the workload again") {
					t.Errorf("explain does not say why it is not rolled:\n%s", explained)
				}
			}
			r.quiet()
			if got := r.tally().since(before)["deployment/web"]; got != 8 {
				t.Errorf("the pod template has changed %d times, want 8: four rolls, and each was reverted", got)
			}

			operator.keeps.Store(true)
			r.secret("db", map[string]string{"password": "three"})
			r.outcomeOf("web", events.VerbCompleted)
			r.quiet()
			if got := r.tally().since(before)["deployment/web"]; got != 9 {
				t.Errorf("the pod template has changed %d times after the next change, want 9", got)
			}
			r.eventually("it is not given up any more", func(ctx context.Context) bool { return actuator.reverted(ctx, r) == 0 })
		})
	}
}

func TestARevertedRolloutIsRepeatedOnceTheOperatorStopsReverting(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*owner){
		"it has learned to keep the annotations": func(o *owner) { o.keeps.Store(true) },
		"it is stopped":                          func(o *owner) { o.end() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, operator := operated(t, false, [...]time.Duration{2 * time.Second, 10 * time.Second, 30 * time.Second})
			before := r.tally()
			r.secret("db", map[string]string{"password": "two"})
			r.outcomeOf("web", events.VerbFailed)
			stop(operator)
			completed := r.outcomeOf("web", events.VerbCompleted)
			if len(completed.Sources) != 1 || completed.Sources[0].Source != "secret/db" {
				t.Errorf("it was rolled for %v, want secret/db", completed.Sources)
			}
			r.quiet()
			// On a slow machine, the operator may have reverted more than one when it is stopped.
			reverted := int64(r.count("web", events.VerbFailed))
			if got := r.tally().since(before)["deployment/web"]; got != 2*reverted+1 {
				t.Errorf("the pod template has changed %d times, want %d rolls and their reverts, and the last roll", got, reverted)
			}
		})
	}
}
