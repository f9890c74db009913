package telemetry

import (
	"context"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// setupTraces makes the tracer provider: a no-op unless the environment names a receiver of spans. The SDK itself reads the sampler
// (OTEL_TRACES_SAMPLER), limits and batching (OTEL_BSP_*) from the environment.
func (t *Telemetry) setupTraces(ctx context.Context, res *resource.Resource) error {
	t.TracerProvider = noop.NewTracerProvider()
	if !tracesWanted() {
		return nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return err
	}
	if autoexport.IsNoneSpanExporter(exporter) {
		return nil
	}
	processor, err := newSpanQueue(exporter, t.MeterProvider)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(processor))
	t.TracerProvider = provider
	t.flushes = append(t.flushes, flush{"traces", provider.Shutdown})
	return nil
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
