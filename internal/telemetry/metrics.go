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
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// maxScrapes is how many scrapes are answered at once. More are refused, so that they cannot pile up.
const maxScrapes = 4

// setupMetrics makes the meter provider, with a reader for /metrics if that is scraped and one for the exporter that
// OTEL_METRICS_EXPORTER names. Without a reader it is a no-op.
func (t *Telemetry) setupMetrics(ctx context.Context, res *resource.Resource, scraped bool) error {
	t.MeterProvider = noop.NewMeterProvider()
	registry, err := newRegistry()
	if err != nil {
		return err
	}
	t.Metrics = metricsHandler(registry)
	if disabled() {
		return nil
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
			return fmt.Errorf("registering: %w", err)
		}
		readers = append(readers, sdkmetric.WithReader(reader))
	}
	if env("OTEL_METRICS_EXPORTER") != "" {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return err
		}
		if !autoexport.IsNoneMetricReader(reader) {
			readers = append(readers, sdkmetric.WithReader(reader))
		}
	}
	if len(readers) == 0 {
		return nil
	}
	provider := sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(res))...)
	t.MeterProvider = provider
	t.flushes = append(t.flushes, flush{"metrics", provider.Shutdown})
	return nil
}

// newRegistry returns a registry of our own, with the metrics of the Go runtime and the process. Any dependency may write to the global
// one.
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
