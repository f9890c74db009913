package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// flushLimit is how long Shutdown may take for traces, and again for metrics.
const flushLimit = 3 * time.Second

// Service describes the program whose telemetry this is.
type Service struct {
	// Name is service.name, such as keyturn-watcher. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
	Name string
	// Version is service.version, and the version of keyturn_build_info; left out if empty.
	Version string
	// Cluster is k8s.cluster.name; left out if empty.
	Cluster string
	// Scraped says that Metrics is served. If false, nothing is measured for it.
	Scraped bool
}

// Telemetry is what a program needs to be observed. Its fields are never nil.
type Telemetry struct {
	// TracerProvider is a no-op unless the environment names an exporter.
	TracerProvider trace.TracerProvider
	// MeterProvider is a no-op if nothing reads it.
	MeterProvider metric.MeterProvider
	// Metrics serves /metrics and nothing else.
	Metrics http.Handler

	flushes    []flush
	flushLimit time.Duration
}

// flush is a provider that Shutdown flushes and ends.
type flush struct {
	name string
	end  func(context.Context) error
}

// Setup builds the telemetry of a program from the standard OTEL_* environment variables. It opens no connection yet and sets no global.
// An error is about the environment: an unknown exporter or protocol, or an attribute list that does not parse. OTEL_SDK_DISABLED=true
// makes both providers no-ops.
func Setup(ctx context.Context, service Service) (*Telemetry, error) {
	res, err := newResource(ctx, service)
	if err != nil {
		return nil, fmt.Errorf("describing this process to telemetry: %w", err)
	}
	meters, err := newMeterProvider(ctx, res, service.Scraped)
	if err != nil {
		return nil, fmt.Errorf("setting up metrics: %w", err)
	}
	t := &Telemetry{
		MeterProvider: meters.MeterProvider, Metrics: meters.handler, flushLimit: flushLimit,
		flushes: []flush{{"metrics", meters.shutdown}},
	}
	if err := observeBuild(t.MeterProvider, service.Version); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up metrics: %w", err), t.Shutdown(ctx))
	}
	// Traces come after metrics, because spans are counted: Shutdown runs in reverse order, and flushes traces first.
	traces, err := newTracerProvider(ctx, res, t.MeterProvider)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("setting up traces: %w", err), t.Shutdown(ctx))
	}
	t.TracerProvider = traces.TracerProvider
	t.flushes = append(t.flushes, flush{"traces", traces.shutdown})
	return t, nil
}

// Shutdown flushes spans and metrics. If the receiver hangs, it returns after some seconds, or at an earlier deadline of ctx, with
// an error that says what was lost. A second call does nothing.
//
// A program shuts down because its context has ended. If ctx has already ended, Shutdown ignores that, because the SDK would otherwise
// flush nothing.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	var errs []error
	for _, flush := range slices.Backward(t.flushes) {
		bounded, cancel := context.WithTimeout(ctx, t.flushLimit)
		if err := flush.end(bounded); err != nil {
			errs = append(errs, fmt.Errorf("flushing %s: %w", flush.name, err))
		}
		cancel()
	}
	t.flushes = nil
	return errors.Join(errs...)
}
