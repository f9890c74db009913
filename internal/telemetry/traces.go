package telemetry

import (
	"context"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// setupTraces makes the tracer provider: a no-op one unless the environment says where spans go. The SDK reads sampler
// (OTEL_TRACES_SAMPLER), limits and batching (OTEL_BSP_*) from the environment by itself.
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
	t.stop.OnStop("traces", provider.Shutdown)
	return nil
}

// tracesWanted says whether the environment names a place for spans.
func tracesWanted() bool {
	if disabled() {
		return false
	}
	return env("OTEL_TRACES_EXPORTER") != "" ||
		env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}
