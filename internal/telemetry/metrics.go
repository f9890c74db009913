package telemetry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// maxScrapes is how many scrapes are served concurrently. More are refused, so that they cannot pile up.
const maxScrapes = 4

// meterProvider is a meter provider with its handler and its shutdown function.
type meterProvider struct {
	metric.MeterProvider
	handler  http.Handler // of /metrics
	shutdown func(context.Context) error
}

// newMeterProvider returns a meter provider with a reader for /metrics, if scraped is true, and one for the exporter that
// OTEL_METRICS_EXPORTER names, if any. Without a reader it is a no-op.
func newMeterProvider(ctx context.Context, res *resource.Resource, scraped bool) (*meterProvider, error) {
	registry, err := newRegistry()
	if err != nil {
		return nil, err
	}
	m := &meterProvider{MeterProvider: noop.NewMeterProvider(), handler: metricsHandler(registry), shutdown: noShutdown}
	if disabled() {
		return m, nil
	}
	var readers []sdkmetric.Option
	if scraped {
		reader, err := promexporter.New(
			promexporter.WithRegisterer(registry),
			promexporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
			// Names are unique across our packages, so the scope would be three labels without information.
			promexporter.WithoutScopeInfo(),
		)
		if err != nil {
			return nil, fmt.Errorf("registering: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	if env("OTEL_METRICS_EXPORTER") != "" {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, err
		}
		if !autoexport.IsNoneMetricReader(reader) {
			readers = append(readers, sdkmetric.WithReader(reader))
		}
	}
	if len(readers) > 0 {
		provider := sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(res))...)
		m.MeterProvider, m.shutdown = provider, provider.Shutdown
	}
	return m, nil
}

// newRegistry returns a new registry with the metrics of the Go runtime and the process. The global registry is not used, because any
// dependency may write to it.
func newRegistry() (*prometheus.Registry, error) {
	registry := prometheus.NewRegistry()
	for _, collector := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering: %w", err)
		}
	}
	return registry, nil
}

// metricsHandler serves /metrics and nothing else.
func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes,
		// OpenMetrics carries exemplars: the trace behind a slow bucket.
		EnableOpenMetrics: true,
	}))
	return mux
}
