package program

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/metrics"

	"github.com/keyturn/keyturn/internal/telemetry"
)

func TestRequestsAreCountedAlsoIfADependencyCountsThem(t *testing.T) {
	clearEnvironment(t)
	tel := setup(t, scraped())
	result, latency := metrics.RequestResult, metrics.RequestLatency
	t.Cleanup(func() { metrics.RequestResult, metrics.RequestLatency = result, latency })
	metrics.Register(metrics.RegisterOpts{})
	must(t, CountRequests(tel.MeterProvider))
	metrics.RequestResult.Increment(t.Context(), "200", "GET", "10.0.0.1:443")
	metrics.RequestLatency.Observe(t.Context(), "GET", url.URL{Host: "10.0.0.1:443"}, time.Millisecond)
	samples := scrape(t, tel)
	for _, want := range []string{
		`keyturn_kubernetes_requests_total{code="200",method="GET"} 1`, `keyturn_kubernetes_request_duration_seconds_count{method="GET"} 1`,
	} {
		if !slices.Contains(samples, want) {
			t.Errorf("no sample %s", want)
		}
	}
}

func TestRequestsToTheAPIServerAreCountedWithoutNamesOfObjects(t *testing.T) {
	clearEnvironment(t)
	tel := setup(t, scraped())
	r := &requests{}
	must(t, telemetry.MakeInstruments(tel.MeterProvider.Meter(meterScope), r.instruments()))
	r.Increment(t.Context(), "200", "PATCH", "10.0.0.1:443")
	r.Increment(t.Context(), "200", "PATCH", "10.0.0.2:443")
	r.Increment(t.Context(), "<error>", "GET", "10.0.0.1:443")
	r.Observe(t.Context(), "PATCH", url.URL{Host: "10.0.0.1:443", Path: "/apis/apps/v1/namespaces/shop/deployments/web"}, 20*time.Millisecond)

	samples := scrape(t, tel)
	for _, want := range []string{
		`keyturn_kubernetes_requests_total{code="200",method="PATCH"} 2`,
		`keyturn_kubernetes_requests_total{code="error",method="GET"} 1`,
		`keyturn_kubernetes_request_duration_seconds_bucket{method="PATCH",le="0.01"} 0`,
		`keyturn_kubernetes_request_duration_seconds_bucket{method="PATCH",le="0.025"} 1`,
	} {
		if !slices.Contains(samples, want) {
			t.Errorf("no sample %s", want)
		}
	}
}
