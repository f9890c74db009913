package actuate

import (
	"context"
	"slices"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
)

// counted returns how many decisions with the reason were counted.
func (got *told) counted(t *testing.T, reason string) int64 {
	t.Helper()
	var count int64
	for _, point := range collect(t, got.metrics)["keyturn.decisions"].(metricdata.Sum[int64]).DataPoints {
		if value, _ := point.Attributes.Value("reason"); value.AsString() == reason {
			count += point.Value
		}
	}
	return count
}

// outcome reports whether there is an outcome with the reason and a message.
func (got *told) outcome(reason string) bool {
	for _, outcome := range got.outcomes {
		if outcome.Reason == reason && outcome.Message != "" {
			return true
		}
	}
	return false
}

// kubeEvent reports whether there is a Kubernetes Event that begins with the reason.
func (got *told) kubeEvent(reason string) bool {
	return slices.ContainsFunc(got.kubeEvents, func(e *corev1.Event) bool { return strings.HasPrefix(e.Message, reason+": ") })
}

// collect returns what was measured, by the names of the instruments.
func collect(t *testing.T, reader sdkmetric.Reader) map[string]metricdata.Aggregation {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.WithoutCancel(t.Context()), &collected); err != nil {
		t.Fatal(err)
	}
	measured := make(map[string]metricdata.Aggregation)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			measured[m.Name] = m.Data
		}
	}
	return measured
}
