package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// maxScrapes is how many scrapes are served concurrently. More are refused, so that they cannot pile up.
const maxScrapes = 4

// setUpMetrics sets up a meter provider with a reader for /metrics, if that is scraped, and one for the exporter in OTEL_METRICS_EXPORTER, if any.
// Without a reader, it is a no-op.
func (t *Telemetry) setUpMetrics(ctx context.Context, res *resource.Resource, service Service) error {
	registry := prometheus.NewRegistry() // Any dependency may write to the global registry.
	err := errors.Join(
		registry.Register(collectors.NewGoCollector()), registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	if err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	mux := http.NewServeMux()
	// OpenMetrics carries exemplars: the trace behind a slow bucket.
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, EnableOpenMetrics: true}))
	t.Metrics = mux
	if disabled() {
		return nil
	}
	var readers []sdkmetric.Option
	if service.Scraped {
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
	if len(readers) > 0 {
		provider := sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(res))...)
		t.MeterProvider = provider
		t.flushes.OnStop("metrics", provider.Shutdown)
	}
	return observeBuild(ctx, t.MeterProvider, service.Version)
}

// build is the metric of the running build. target_info has the version, too, but cannot be joined by pod with the series of a dashboard
// or an alert.
type build struct{ info metric.Int64UpDownCounter }

func (b *build) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.UpDown(&b.info, "keyturn.build.info", "",
			"Always 1. Its labels are the version of the program, the commit if the go tool knew it, and the version of Go.",
			"version", "revision", "goversion"),
	}
}

func observeBuild(ctx context.Context, meters metric.MeterProvider, version string) error {
	b := &build{}
	if err := telemetry.MakeInstruments(meters.Meter(meterScope), b.instruments()); err != nil {
		return err
	}
	b.info.Add(ctx, 1, metric.WithAttributes(
		attribute.String("version", version), attribute.String("revision", revision()), attribute.String("goversion", goruntime.Version())))
	return nil
}

func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				return setting.Value
			}
		}
	}
	return ""
}
