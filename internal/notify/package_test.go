package notify

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

func TestMain(m *testing.M) { natstest.Main(m) }

const testCluster = "prod-eu"

// outcome returns an outcome of a workload in a namespace. The revision identifies it.
func outcome(verb events.Verb, namespace, revision string) events.Outcome {
	return events.Outcome{
		Cluster: testCluster, Verb: verb, ResourceVersion: "4720", Time: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC),
		Cause: "uid/" + revision, Trace: events.TraceContext{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"},
		Workload: events.Workload{Kind: "deployment", Namespace: namespace, Name: "web", UID: "aa0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a22"},
		Revision: revision, Reason: "deadline-exceeded", Message: "it did not become ready in time",
		Sources: []events.OutcomeSource{{Source: "secret/db"}, {Source: "configmap/app"}},
	}
}

// counters reads keyturn.notifications.
type counters struct {
	reader   *sdkmetric.ManualReader
	provider *sdkmetric.MeterProvider
}

func newCounters() *counters {
	reader := sdkmetric.NewManualReader()
	return &counters{reader: reader, provider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}
}

func (c *counters) meter() metric.Meter { return c.provider.Meter("test") }

// results returns the counts by "<sink>/<type>/<result>".
func (c *counters) results(t *testing.T) map[string]int64 {
	t.Helper()
	return c.counts(t, "keyturn.notifications", "sink", "type", "result")
}

// counts returns the counts of a metric by the values of its labels.
func (c *counters) counts(t *testing.T, name string, labels ...attribute.Key) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	testkit.Must(t, c.reader.Collect(t.Context(), &all))
	got := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if m.Name != name || !ok {
				continue
			}
			for _, point := range sum.DataPoints {
				var values []string
				for _, label := range labels {
					value, _ := point.Attributes.Value(label)
					values = append(values, value.AsString())
				}
				got[strings.Join(values, "/")] = point.Value
			}
		}
	}
	return got
}
