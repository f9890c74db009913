package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// flushLimit is how long Shutdown waits for each of its steps.
const flushLimit = 3 * time.Second

// Service says which program is speaking.
type Service struct {
	// Name is service.name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES says otherwise: keyturn-watcher.
	Name string
	// Version is service.version; left out where it is empty.
	Version string
	// Cluster is k8s.cluster.name; left out where it is empty.
	Cluster string
}

// Telemetry is what a program needs to be observed. Its fields are never nil.
type Telemetry struct {
	// TracerProvider is a no-op unless the environment names an exporter.
	TracerProvider trace.TracerProvider
	// MeterProvider is a no-op where nothing reads it.
	MeterProvider metric.MeterProvider
	// Propagator carries W3C trace context and baggage, whether traces are on or off.
	Propagator propagation.TextMapPropagator

	logger  *slog.Logger
	opts    Options
	metrics http.Handler
	stop    *Stack
}

// Setup builds the telemetry of a program from opts and the standard OTEL_* environment variables. It connects to
// nothing yet and sets no global. An error is about the environment: an exporter, protocol or attribute list that is
// not understood. OTEL_SDK_DISABLED=true makes both providers no-ops.
func Setup(ctx context.Context, service Service, logger *slog.Logger, opts Options) (*Telemetry, error) {
	t := &Telemetry{
		Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
		logger:     logger,
		opts:       opts,
		stop:       NewStack(logger, flushLimit),
	}
	if err := t.setup(ctx, service); err != nil {
		return nil, errors.Join(err, t.stop.Stop(ctx))
	}
	return t, nil
}

func (t *Telemetry) setup(ctx context.Context, service Service) error {
	res, err := newResource(ctx, service)
	if err != nil {
		return fmt.Errorf("describing this process to telemetry: %w", err)
	}
	if err := t.setupMetrics(ctx, res); err != nil {
		return fmt.Errorf("setting up metrics: %w", err)
	}
	// After the metrics, because it counts its spans, and so that it is flushed before them.
	if err := t.setupTraces(ctx, res); err != nil {
		return fmt.Errorf("setting up traces: %w", err)
	}
	return nil
}

// Listen serves /metrics and the probes of health, each on its address of Options, until Shutdown. Add the checks to
// health first: a probe passes until then. An error means that one of the addresses cannot be listened on.
func (t *Telemetry) Listen(ctx context.Context, health *Health) error {
	for _, server := range []struct {
		name, addr string
		handler    http.Handler
	}{
		{"metrics", t.opts.MetricsAddr, t.metrics},
		{"health", t.opts.HealthAddr, health.Handler()},
	} {
		s, err := Serve(ctx, t.logger.With("component", server.name), server.addr, server.handler)
		if err != nil {
			return fmt.Errorf("serving %s: %w", server.name, err)
		}
		t.stop.OnStop(server.name+" server", s.Stop)
	}
	return nil
}

// Shutdown stops the servers and flushes spans and metrics. It returns by itself after some seconds also where the
// receiver hangs, with an error that says what was lost; a deadline of ctx makes it hurry.
//
// A program shuts down because its context has ended. Such a context counts as one that never ends: the SDK would
// otherwise flush nothing.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return t.stop.Stop(ctx)
}

// disabled says whether the environment turned OpenTelemetry off altogether.
func disabled() bool {
	return strings.EqualFold(env("OTEL_SDK_DISABLED"), "true")
}

// env returns an environment variable of OpenTelemetry, for which being empty is the same as not being set.
func env(name string) string {
	return strings.TrimSpace(os.Getenv(name))
}
