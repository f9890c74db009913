//go:build !race

package actuate_test

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// These are the words for what an actuator tells besides outcomes: metrics, spans, log lines and Kubernetes Events.

// recordedTelemetry has the spans and metrics of an actuator.
type recordedTelemetry struct {
	s      *scene
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

// instrument has the next actuator trace and measure.
func (s *scene) instrument() *recordedTelemetry {
	seen := &recordedTelemetry{s: s, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	s.options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen.spans)).Tracer("")
	s.options.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(seen.reader)).Meter("")
	return seen
}

// spansNamed returns the spans with a name that have ended.
func (m *recordedTelemetry) spansNamed(name string) []sdktrace.ReadOnlySpan {
	var named []sdktrace.ReadOnlySpan
	for _, span := range m.spans.Ended() {
		if span.Name() == name {
			named = append(named, span)
		}
	}
	return named
}

// attributeOf returns an attribute of a span as text, empty if it has none.
func attributeOf(attributes []attribute.KeyValue, key string) string {
	set := attribute.NewSet(attributes...)
	value, _ := set.Value(attribute.Key(key))
	return value.String()
}

// measurements are what was measured, by the names of the instruments.
type measurements map[string]metricdata.Aggregation

func (m *recordedTelemetry) measurements() measurements {
	m.s.Helper()
	var collected metricdata.ResourceMetrics
	testkit.Must(m.s, m.reader.Collect(m.s.Context(), &collected))
	all := make(measurements)
	for _, scope := range collected.ScopeMetrics {
		for _, one := range scope.Metrics {
			all[one.Name] = one.Data
		}
	}
	return all
}

// point is what was measured with some labels. The value of a histogram is how often it was measured.
type point struct {
	labels attribute.Set
	value  int64
}

func (m measurements) points(name string) []point {
	var points []point
	switch data := m[name].(type) {
	case metricdata.Sum[int64]:
		for _, one := range data.DataPoints {
			points = append(points, point{one.Attributes, one.Value})
		}
	case metricdata.Gauge[int64]:
		for _, one := range data.DataPoints {
			points = append(points, point{one.Attributes, one.Value})
		}
	case metricdata.Histogram[float64]:
		for _, one := range data.DataPoints {
			points = append(points, point{one.Attributes, int64(one.Count)})
		}
	}
	return points
}

// value returns the sum of what was measured with a label, or with any if its key is empty. It returns false if nothing was.
func (m measurements) value(name, key, label string) (sum int64, ok bool) {
	for _, one := range m.points(name) {
		if value, labeled := one.labels.Value(attribute.Key(key)); key == "" || labeled && value.String() == label {
			sum, ok = sum+one.value, true
		}
	}
	return sum, ok
}

// spent returns how often a time was measured, and the sum in seconds.
func (m *recordedTelemetry) spent(name string) (count uint64, sum float64) {
	m.s.Helper()
	data, _ := m.measurements()[name].(metricdata.Histogram[float64])
	for _, one := range data.DataPoints {
		count, sum = count+one.Count, sum+one.Sum
	}
	return count, sum
}

// want wants a sum of what was measured, see value.
func (m *recordedTelemetry) want(name, key, label string, want int64) {
	m.s.Helper()
	if got, ok := m.measurements().value(name, key, label); !ok || got != want {
		m.s.Errorf("after %s, %s{%s} is %d, there: %t, want %d", m.s.elapsed(), name, label, got, ok, want)
	}
}

// logText returns what was logged so far.
func (s *scene) logText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// outcomesSoFar returns all outcomes that were told, the oldest first.
func (s *scene) outcomesSoFar() []events.Outcome {
	s.Helper()
	var all []events.Outcome
	err := s.bus.History(s.Context(), bus.HistoryQuery{Kind: events.KindRollout}, func(stored events.Stored) error {
		outcome, err := stored.Outcome()
		all = append(all, outcome)
		return err
	})
	testkit.Must(s, err)
	return all
}

// textOf returns a Kubernetes Event as text: "web Warning NotRolled key-missing: ...".
func textOf(event *corev1.Event) string {
	about := event.InvolvedObject
	name := nameOf(events.Workload{Kind: strings.ToLower(about.Kind), Namespace: about.Namespace, Name: about.Name})
	return name + " " + event.Type + " " + event.Reason + " " + event.Message
}

// patchesTake makes the patches of a workload by the newest actuator take some time.
func (s *scene) patchesTake(name string, d time.Duration) {
	s.Helper()
	id, client := parse(name), s.lastClient()
	s.intercept("patch", id.resource().Resource, func(action k8stesting.Action) (bool, runtime.Object, error) {
		patch, ok := action.(k8stesting.PatchAction)
		if ok && patch.GetNamespace() == id.namespace && patch.GetName() == id.name {
			takes(client, d)
		}
		return false, nil, nil
	})
}

// takes lets time pass until a request is answered. Unlike an API server, the client answers one at a time.
func takes(client *fake.Clientset, d time.Duration) {
	client.Unlock()
	defer client.Lock()
	<-time.After(d)
}
