package program

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/metrics"

	"github.com/keyturn/keyturn/tests/testkit"
)

// A dependency may count them, too.
func TestRequestsToTheAPIServerAreCountedWithoutNamesOfObjects(t *testing.T) {
	clearEnvironment(t)
	tel := setup(t, scraped())
	result, latency := metrics.RequestResult, metrics.RequestLatency
	t.Cleanup(func() { metrics.RequestResult, metrics.RequestLatency = result, latency })
	metrics.Register(metrics.RegisterOpts{})
	testkit.Must(t, CountRequests(tel.MeterProvider))
	metrics.RequestResult.Increment(t.Context(), "200", "PATCH", "10.0.0.1:443")
	metrics.RequestResult.Increment(t.Context(), "200", "PATCH", "10.0.0.2:443")
	metrics.RequestResult.Increment(t.Context(), "<error>", "GET", "10.0.0.1:443")
	web := url.URL{Host: "10.0.0.1:443", Path: "/apis/apps/v1/namespaces/shop/deployments/web"}
	metrics.RequestLatency.Observe(t.Context(), "PATCH", web, 20*time.Millisecond)

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
