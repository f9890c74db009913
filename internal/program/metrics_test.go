package program

import (
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/tests/testkit"
)

// scrape returns the samples of /metrics, without comments.
func scrape(t testing.TB, tel *Telemetry) []string {
	t.Helper()
	response := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if response.Code != http.StatusOK {
		t.Fatalf("scrape is %d: %s", response.Code, response.Body)
	}
	var samples []string
	for line := range strings.Lines(response.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			samples = append(samples, strings.TrimSpace(line))
		}
	}
	return samples
}

func TestMetricsAreServedUnderThePrometheusNames(t *testing.T) {
	clearEnvironment(t)
	tel := setup(t, scraped())
	meter := tel.MeterProvider.Meter("test")
	rollouts, err := meter.Int64Counter("keyturn.rollouts", metric.WithUnit("{rollout}"))
	testkit.Must(t, err)
	age, err := meter.Float64Histogram("keyturn.event.age", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.5, 5))
	testkit.Must(t, err)
	rollouts.Add(t.Context(), 3, metric.WithAttributes(attribute.String("decision", "rolled")))
	age.Record(t.Context(), 1.5)

	samples := scrape(t, tel)
	for _, want := range []string{
		`keyturn_rollouts_total{decision="rolled"} 3`,
		`keyturn_event_age_seconds_bucket{le="0.5"} 0`,
		`keyturn_event_age_seconds_bucket{le="5"} 1`,
		`keyturn_event_age_seconds_sum 1.5`,
		`keyturn_event_age_seconds_count 1`,
		// There is no commit, because the go command does not stamp test binaries.
		`keyturn_build_info{goversion="` + goruntime.Version() + `",revision="",version="1.2.3"} 1`,
	} {
		if !slices.Contains(samples, want) {
			t.Errorf("no sample %s", want)
		}
	}
	for _, prefix := range []string{"go_goroutines ", "process_cpu_seconds_total ", "target_info{"} {
		if !slices.ContainsFunc(samples, func(sample string) bool { return strings.HasPrefix(sample, prefix) }) {
			t.Errorf("no sample begins with %s", prefix)
		}
	}
}

func TestMetricsShowTheTraceBehindABucket(t *testing.T) {
	clearEnvironment(t)
	tel := setup(t, scraped())
	age, err := tel.MeterProvider.Meter("test").Float64Histogram("keyturn.event.age", metric.WithUnit("s"))
	testkit.Must(t, err)
	age.Record(spanContext(t), 1.5)

	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	response := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(response, request)
	if want := `trace_id="` + testTrace + `"`; !strings.Contains(response.Body.String(), want) {
		t.Errorf("no exemplar with %s", want)
	}
}

func TestMetricsAreMeasuredOnlyWhereTheyAreRead(t *testing.T) {
	for _, tt := range []struct {
		name    string
		scraped bool
		env     map[string]string
		want    bool
	}{
		{"a scraper is a reader", true, nil, true},
		{"without scraper there is no reader", false, nil, false},
		{"an exporter is a reader", false, map[string]string{"OTEL_METRICS_EXPORTER": "otlp"}, true},
		{"a disabled SDK reads nothing", true, map[string]string{"OTEL_SDK_DISABLED": "true"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clearEnvironment(t)
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			t.Cleanup(server.Close)
			t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", server.URL)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			service := service()
			service.Scraped = tt.scraped
			tel := setup(t, service)
			_, off := tel.MeterProvider.(noop.MeterProvider)
			if off == tt.want {
				t.Errorf("provider is %T", tel.MeterProvider)
			}
		})
	}
}

func TestTwoProgramsInOneProcessHaveTheirOwnMetrics(t *testing.T) {
	clearEnvironment(t)
	one, two := setup(t, scraped()), setup(t, scraped())
	counter, err := one.MeterProvider.Meter("test").Int64Counter("keyturn.rollouts")
	testkit.Must(t, err)
	counter.Add(t.Context(), 1)
	const sample = "keyturn_rollouts_total 1"
	if !slices.Contains(scrape(t, one), sample) {
		t.Error("the program that counted does not show it")
	}
	if slices.Contains(scrape(t, two), sample) {
		t.Error("the other program shows it, too")
	}
}
