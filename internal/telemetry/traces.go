package telemetry

import (
	"context"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// tracerProvider is a tracer provider with its shutdown function.
type tracerProvider struct {
	trace.TracerProvider
	shutdown func(context.Context) error
}

// newTracerProvider returns a tracer provider: a no-op unless the environment names a receiver of spans. The SDK itself reads the sampler
// (OTEL_TRACES_SAMPLER), limits and batching (OTEL_BSP_*) from the environment.
func newTracerProvider(ctx context.Context, res *resource.Resource, meters metric.MeterProvider) (*tracerProvider, error) {
	off := &tracerProvider{noop.NewTracerProvider(), noShutdown}
	if !tracesWanted() {
		return off, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, err
	}
	if autoexport.IsNoneSpanExporter(exporter) {
		return off, nil
	}
	processor, err := newSpanQueue(exporter, meters)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(processor))
	return &tracerProvider{provider, provider.Shutdown}, nil
}

// tracesWanted reports whether the environment names a receiver of spans.
func tracesWanted() bool {
	if disabled() {
		return false
	}
	return env("OTEL_TRACES_EXPORTER") != "" ||
		env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}
