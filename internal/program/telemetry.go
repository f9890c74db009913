package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

const meterScope = "github.com/keyturn/keyturn/internal/telemetry"

// flushLimit is how long Shutdown may take for traces, and again for metrics.
const flushLimit = 3 * time.Second

// Service describes the program to its telemetry.
type Service struct {
	// Name is service.name, such as keyturn-watcher. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it.
	Name string
	// Version is service.version, and the version of keyturn_build_info; omitted if empty.
	Version string
	// Cluster is k8s.cluster.name; omitted if empty.
	Cluster string
	// Scraped is true if Metrics is served. Otherwise, it has no data.
	Scraped bool
}

// Telemetry contains the providers of a program. Its fields are never nil.
type Telemetry struct {
	// TracerProvider is a no-op unless the environment names an exporter.
	TracerProvider trace.TracerProvider
	// MeterProvider is a no-op if nothing reads it.
	MeterProvider metric.MeterProvider
	// Metrics serves /metrics and nothing else.
	Metrics http.Handler

	// flushes flush and end the providers.
	flushes stack
}

// Setup builds the telemetry of a program from the standard OTEL_* environment variables. It opens no connection yet and sets no global.
// An error is about the environment: an unknown exporter or protocol, or an attribute list that does not parse. OTEL_SDK_DISABLED=true
// makes both providers no-ops.
func Setup(ctx context.Context, service Service) (*Telemetry, error) {
	res, err := newResource(ctx, service)
	if err != nil {
		return nil, fmt.Errorf("describing this process to telemetry: %w", err)
	}
	t := &Telemetry{
		TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
		flushes: stack{logger: slog.New(slog.DiscardHandler), limit: flushLimit},
	}
	if err := t.setUpMetrics(ctx, res, service); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up metrics: %w", err), t.Shutdown(ctx))
	}
	// Traces come after metrics, because spans are counted: Shutdown runs in reverse order, and flushes traces first.
	if err := t.setUpTraces(ctx, res); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up traces: %w", err), t.Shutdown(ctx))
	}
	return t, nil
}

// Shutdown flushes spans and metrics. If the receiver hangs, it returns after some seconds, or at an earlier deadline of ctx, with an error that
// names the loss. A second call does nothing.
//
// A program shuts down because its context has ended. If ctx has already ended, Shutdown ignores that, because the SDK would otherwise
// flush nothing.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return t.flushes.stop(ctx)
}

// newResource describes this process. In order of precedence, lowest first: the service, the pod's POD_NAME, POD_NAMESPACE and POD_UID,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME.
func newResource(ctx context.Context, service Service) (*resource.Resource, error) {
	attrs := slices.DeleteFunc([]attribute.KeyValue{
		semconv.ServiceName(service.Name), semconv.ServiceNamespace("keyturn"), semconv.ServiceVersion(service.Version),
		semconv.K8SClusterName(service.Cluster), semconv.K8SPodName(env("POD_NAME")), semconv.K8SNamespaceName(env("POD_NAMESPACE")),
		semconv.K8SPodUID(env("POD_UID")), semconv.ServiceInstanceID(env("POD_UID")),
	}, func(a attribute.KeyValue) bool { return a.Value.AsString() == "" })
	return resource.New(ctx,
		resource.WithSchemaURL(semconv.SchemaURL),
		resource.WithTelemetrySDK(),
		resource.WithService(), // a random service.instance.id, for use outside a pod
		resource.WithAttributes(attrs...),
		resource.WithFromEnv(),
	)
}

func disabled() bool {
	return strings.EqualFold(env("OTEL_SDK_DISABLED"), "true")
}

// env returns an OpenTelemetry environment variable, for which empty means unset.
func env(name string) string {
	return strings.TrimSpace(os.Getenv(name))
}
