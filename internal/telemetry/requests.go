package telemetry

import (
	"context"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/client-go/tools/metrics"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// CountRequests has client-go's requests to the API server measured by the provider's instruments. Like Bridge it sets a
// global of the process, of which only the first call counts: it is for main alone.
func CountRequests(meters metric.MeterProvider) error {
	r := &requests{}
	if err := instrument.Make(meters.Meter(scope), r.instruments()); err != nil {
		return err
	}
	metrics.Register(metrics.RegisterOpts{RequestResult: r, RequestLatency: r})
	return nil
}

// scope is the name of this package's meter.
const scope = "github.com/keyturn/keyturn/internal/telemetry"

// requests measures requests to the API server. The host and the path are no labels: the one is always the same, and of
// the other there are as many as there are objects.
type requests struct {
	count    metric.Int64Counter
	duration metric.Float64Histogram
}

func (r *requests) instruments() []instrument.Instrument {
	return []instrument.Instrument{
		{
			Counter: &r.count, Name: "keyturn.kubernetes.requests", Unit: "{request}", Labels: []string{"method", "code"},
			About: "Requests to the API server, by HTTP method and status code; error is one that got no answer.",
		},
		{
			Histogram: &r.duration, Name: "keyturn.kubernetes.request.duration", Unit: "s", Labels: []string{"method"}, Buckets: instrument.Latency(),
			About: "Time until the API server began to answer.",
		},
	}
}

// Increment implements metrics.ResultMetric.
func (r *requests) Increment(ctx context.Context, code, method, _ string) {
	r.count.Add(ctx, 1, metric.WithAttributes(
		attribute.String("method", method), attribute.String("code", strings.Trim(code, "<>"))))
}

// Observe implements metrics.LatencyMetric.
func (r *requests) Observe(ctx context.Context, method string, _ url.URL, latency time.Duration) {
	r.duration.Record(ctx, latency.Seconds(), metric.WithAttributes(attribute.String("method", method)))
}

// Instruments lists what both programs measure of themselves.
func Instruments() []instrument.Instrument {
	return append(new(requests).instruments(), new(spanCounter).instruments()...)
}
