package actuate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
	"github.com/keyturn/keyturn/tests/testkit"
)

// measured returns an actuator and the reader of its metrics.
func measured(t *testing.T) (*Actuator, *sdkmetric.ManualReader) {
	t.Helper()
	reader, options := sdkmetric.NewManualReader(), testOptions()
	options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	options.ReloaderMetrics = true
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return a, reader
}

// sampled returns a context with the span of a trace that is kept.
func sampled(t *testing.T) context.Context {
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled,
	}))
}

// points returns the value of each point by its attributes; that of a histogram is its count.
func points(data metricdata.Aggregation) map[attribute.Set]int64 {
	values := make(map[attribute.Set]int64)
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, point := range data.DataPoints {
			values[point.Attributes] = point.Value
		}
	case metricdata.Gauge[int64]:
		for _, point := range data.DataPoints {
			values[point.Attributes] = point.Value
		}
	case metricdata.Histogram[float64]:
		for _, point := range data.DataPoints {
			values[point.Attributes] = int64(point.Count)
		}
	}
	return values
}

// value returns the value of the point with one label, or of that without any if the label is empty.
func value(data metricdata.Aggregation, label attribute.KeyValue) (int64, bool) {
	for set, value := range points(data) {
		if got, ok := set.Value(label.Key); label.Key == "" && set.Len() == 0 || ok && got == label.Value {
			return value, true
		}
	}
	return 0, false
}

// measure records everything at least once, failures included.
func measure(t *testing.T, a *Actuator) {
	t.Helper()
	ctx, m, w := sampled(t), a.metrics, workloadOf(t, "auto", wholeDB, nil)
	reject := &events.RejectError{Reason: "patch-denied", Err: errors.New("no")}
	change := changeOf(func(c *events.Change) { c.Time = written })
	m.received(ctx, &events.Delivery{Change: change, Deliveries: 1}, []*workload.Workload{w}, written.Add(time.Second))
	m.decided(ctx, plan.Stale)
	m.patched(ctx, w.ID, true)
	m.rolledFor(ctx, w.ID, time.Second)
	m.retried(ctx, w.ID)
	m.finished(ctx, change, time.Second, nil)
	m.finished(ctx, change, time.Second, reject)
	m.finished(ctx, change, time.Second, context.Canceled)
	m.published(ctx, nil)
	m.published(ctx, errors.New("no"))
	m.ended(ctx, "deployment", events.Outcome{Verb: events.VerbCompleted, Reason: reasonRolledOut}, time.Second)
	m.ready(ctx, "deployment", time.Second)
	m.syncing(ctx, 1)
	m.synced(ctx, "synced", time.Second)
	m.dropEvent(ctx)
	lead(t, a)
}

// lead makes the actuator lead, with one event that was delivered and one that was not.
func lead(t *testing.T, a *Actuator) {
	t.Helper()
	a.bus = busOf(t)
	for _, name := range []string{"db", "other"} {
		change := changeOf(func(c *events.Change) { c.Source.Name, c.UID, c.Time = name, "uid-"+name, written })
		mustPublish(t, a.bus, change, 0)
	}
	ctx, stop := context.WithCancel(t.Context())
	delivered := make(chan struct{})
	deliver := sync.OnceFunc(func() { close(delivered) }) // It is delivered again if the heartbeats are late.
	options := consumeOptions(a.options, a.metrics.reject)
	options.MaxAckPending = 1
	var consuming sync.WaitGroup
	consuming.Go(func() {
		err := a.bus.Consume(ctx, options, func(context.Context, *events.Delivery) { deliver() })
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		consuming.Wait()
	})
	<-delivered
	// The server counts what is stored for a consumer later.
	testkit.Await(t, "the other event is pending", func(ctx context.Context) bool {
		lag, err := a.bus.Lag(ctx, options.Durable)
		return err == nil && lag.Pending == 1 && lag.AckPending == 1
	})
	a.snapshots.Store(&snapshot{})
	a.leading.Store(true)
}

// collectLed is like collect, of an actuator that leads: it has the metrics of the consumer, too, which are absent while the server is slow to answer.
func collectLed(t *testing.T, reader sdkmetric.Reader) (collected map[string]metricdata.Aggregation) {
	t.Helper()
	testkit.Eventually(t, "the consumer is measured", func() bool {
		collected = collect(t, reader)
		return collected["keyturn.consumer.pending"] != nil
	})
	return collected
}

func TestWhatIsMeasuredHasTheLabelsOfItsDefinition(t *testing.T) {
	a, reader := measured(t)
	measure(t, a)
	collected := collectLed(t, reader)
	for _, instrument := range slices.Concat(Instruments(), ReloaderInstruments()) {
		data, ok := collected[instrument.Name]
		if !ok {
			t.Errorf("%s is not measured", instrument.Name)
			continue
		}
		delete(collected, instrument.Name)
		labels := map[string]bool{}
		for set := range points(data) {
			for _, label := range set.ToSlice() {
				labels[string(label.Key)] = true
			}
		}
		want := map[string]bool{}
		for _, label := range instrument.Labels {
			want[label] = true
		}
		if diff := cmp.Diff(want, labels); diff != "" {
			t.Errorf("labels of %s (-definition +measured):\n%s", instrument.Name, diff)
		}
	}
	for name := range collected {
		t.Errorf("%s is measured and not defined", name)
	}
}

func TestAHistogramLeadsToTheTrace(t *testing.T) {
	a, reader := measured(t)
	measure(t, a)
	collected := collect(t, reader)
	want := trace.TraceID{1, 2, 3}
	for _, name := range []string{
		"keyturn.change.patch.duration", "keyturn.change.ready.duration", "keyturn.rollout.duration", "messaging.process.duration",
	} {
		data, ok := collected[name].(metricdata.Histogram[float64])
		if !ok || len(data.DataPoints) == 0 {
			t.Errorf("%s is not measured", name)
			continue
		}
		if exemplars := data.DataPoints[0].Exemplars; len(exemplars) == 0 || trace.TraceID(exemplars[0].TraceID) != want {
			t.Errorf("the exemplars of %s are %v", name, exemplars)
		}
	}
}

func TestAnEventThatGoesToTheDeadLettersIsCountedOnce(t *testing.T) {
	a, reader := measured(t)
	measure(t, a)
	collected := collect(t, reader)
	if got, _ := value(collected["keyturn.events.rejected"], attribute.String("reason", "patch-denied")); got != 1 {
		t.Errorf("%d were counted, want 1", got)
	}
	// An event that is given back is not finished: two of three are.
	var done int64
	for _, count := range points(collected["messaging.process.duration"]) {
		done += count
	}
	if done != 2 {
		t.Errorf("%d events were measured, want 2", done)
	}
}

// Prometheus' increase() does not see the first sample of a series: if it is that of the failures, nobody is told of them.
func TestFailuresAreCountedFromZero(t *testing.T) {
	a, reader := measured(t)
	before := points(collect(t, reader)["keyturn.rollouts"])
	for _, kind := range a.kinds {
		for _, reason := range []string{reasonAborted, reasonBakeFailed, reasonDeadlineExceeded, reasonReverted, reasonTimedOut} {
			end := endLabel{kind.Name, events.VerbFailed, reason}
			if count, ok := before[attribute.NewSet(end.labels()...)]; !ok || count != 0 {
				t.Errorf("%v before a rollout failed: got %d, %t, want 0", end, count, ok)
			}
			a.metrics.ended(t.Context(), kind.Name, events.Outcome{Verb: events.VerbFailed, Reason: reason}, time.Second)
		}
	}
	if after := points(collect(t, reader)["keyturn.rollouts"]); len(before) == 0 || len(after) != len(before) {
		t.Errorf("%d series before a rollout failed, %d after, want the same", len(before), len(after))
	}
}

func TestTheNamesOfReloaderAreThereOnlyWhenTheyAreWanted(t *testing.T) {
	options := testOptions()
	reader := sdkmetric.NewManualReader()
	options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")
	a, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	a.metrics.decided(t.Context(), plan.Stale)
	a.metrics.received(t.Context(), &events.Delivery{Change: changeOf(nil)}, nil, written)
	a.metrics.finished(t.Context(), changeOf(nil), time.Second, nil)
	a.metrics.reloader.retried(t.Context())
	for name := range collect(t, reader) {
		if strings.HasPrefix(name, "reloader.") {
			t.Errorf("there is %s", name)
		}
	}
}
