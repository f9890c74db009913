package program

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/client-go/tools/metrics"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// CountRequests measures client-go's requests to the API server with the provider's instruments. Like Bridge it sets a global of the process, so
// it must be called before the first client is created.
func CountRequests(meters metric.MeterProvider) error {
	r := &requests{}
	if err := telemetry.MakeInstruments(meters.Meter(meterScope), r.instruments()); err != nil {
		return err
	}
	// Only the first call of metrics.Register has an effect, and an init function of controller-runtime, which operators' types need, makes
	// that call. So set the variables.
	metrics.RequestResult, metrics.RequestLatency = r, r
	return nil
}

// requests measures requests to the API server. Host and path are not labels: the host never changes, and there are as many paths as
// objects.
type requests struct {
	count    metric.Int64Counter
	duration metric.Float64Histogram
}

func (r *requests) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&r.count, "keyturn.kubernetes.requests", "{request}",
			"Requests to the API server, by HTTP method and status code; error means no response.", "method", "code"),
		telemetry.Duration(&r.duration, "keyturn.kubernetes.request.duration",
			"Time to the first byte of the API server's response.", "method"),
	}
}

// Increment implements metrics.ResultMetric.
func (r *requests) Increment(ctx context.Context, code, method, _ string) {
	r.count.Add(ctx, 1, metric.WithAttributes(attribute.String("method", method), attribute.String("code", strings.Trim(code, "<>"))))
}

// Observe implements metrics.LatencyMetric.
func (r *requests) Observe(ctx context.Context, method string, _ url.URL, latency time.Duration) {
	r.duration.Record(ctx, latency.Seconds(), metric.WithAttributes(attribute.String("method", method)))
}

// Instruments returns the instruments of all programs.
func Instruments() []telemetry.Instrument {
	return slices.Concat(new(requests).instruments(), new(spanCounter).instruments(), new(build).instruments())
}
