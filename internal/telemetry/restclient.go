package telemetry

import (
	"context"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// restClient measures requests to the API server under the names and labels that controllers usually use, including Reloader, and passes
// them on to requests.
type restClient struct {
	*requests
	count    metric.Int64Counter
	duration metric.Float64Histogram
}

func (r *restClient) instruments() []instrument.Instrument {
	return []instrument.Instrument{
		{
			Counter: &r.count, Name: "rest.client.requests", Labels: []string{"code", "method", "host"},
			About: "Requests to the API server, by status code, HTTP method and the server's host and port.",
		},
		{
			Histogram: &r.duration, Name: "rest.client.request.duration", Unit: "s", Labels: []string{"verb", "host"},
			Buckets: []float64{0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30},
			About:   "Time to the first byte of the API server's response.",
		},
	}
}

// RestClientInstruments returns the instruments of CountRequests that are off by default.
func RestClientInstruments() []instrument.Instrument { return new(restClient).instruments() }

// Increment implements metrics.ResultMetric. The code of a request without a response is <error>, as in client-go.
func (r *restClient) Increment(ctx context.Context, code, method, host string) {
	r.requests.Increment(ctx, code, method, host)
	r.count.Add(ctx, 1, metric.WithAttributes(
		attribute.String("code", code), attribute.String("method", method), attribute.String("host", host)))
}

// Observe implements metrics.LatencyMetric.
func (r *restClient) Observe(ctx context.Context, method string, to url.URL, latency time.Duration) {
	r.requests.Observe(ctx, method, to, latency)
	r.duration.Record(ctx, latency.Seconds(), metric.WithAttributes(attribute.String("verb", method), attribute.String("host", to.Host)))
}
