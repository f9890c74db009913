package program

import (
	"context"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// setUpTraces sets up a tracer provider: a no-op unless the environment names a receiver of spans. The SDK itself reads the sampler
// (OTEL_TRACES_SAMPLER), limits and batching (OTEL_BSP_*) from the environment.
func (t *Telemetry) setUpTraces(ctx context.Context, res *resource.Resource) error {
	if disabled() || env("OTEL_TRACES_EXPORTER")+env("OTEL_EXPORTER_OTLP_ENDPOINT")+env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil || autoexport.IsNoneSpanExporter(exporter) {
		return err
	}
	processor, err := newSpanQueue(exporter, t.MeterProvider)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(processor))
	t.TracerProvider = provider
	t.flushes.OnStop("traces", provider.Shutdown)
	return nil
}

// spanQueue is the SDK's batch processor, with a count of exported, failed and dropped spans. The SDK drops spans silently when its queue
// is full; spanQueue applies the same bound first, so that every drop is counted.
type spanQueue struct {
	sdktrace.SpanProcessor
	*spanCounter
	limit int64
}

// spanCounter counts spans. The queue and its exporter share it.
type spanCounter struct {
	pending atomic.Int64 // spans in the queue and in the batch being exported
	spans   metric.Int64Counter
}

func (c *spanCounter) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&c.spans, "keyturn.telemetry.spans", "{span}",
			"Spans, by outcome: exported, failed or dropped.", "outcome"),
	}
}

func (c *spanCounter) count(ctx context.Context, n int, outcome string) {
	c.spans.Add(ctx, int64(n), metric.WithAttributes(attribute.String("outcome", outcome)))
}

func newSpanQueue(exporter sdktrace.SpanExporter, meters metric.MeterProvider) (*spanQueue, error) {
	counter := &spanCounter{}
	if err := telemetry.MakeInstruments(meters.Meter(meterScope), counter.instruments()); err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(env("OTEL_BSP_MAX_QUEUE_SIZE"))
	if err != nil || limit <= 0 {
		limit = sdktrace.DefaultMaxQueueSize // as if it were unset
	}
	batches := sdktrace.NewBatchSpanProcessor(&countingExporter{exporter, counter}, sdktrace.WithMaxQueueSize(limit))
	return &spanQueue{SpanProcessor: batches, spanCounter: counter, limit: int64(limit)}, nil
}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (q *spanQueue) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.pending.Add(1) > q.limit {
		q.pending.Add(-1)
		q.count(context.Background(), 1, "dropped")
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// countingExporter counts spans as they leave the queue.
type countingExporter struct {
	sdktrace.SpanExporter
	*spanCounter
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.pending.Add(-int64(len(spans)))
	outcome := "exported"
	if err != nil {
		outcome = "failed"
	}
	e.count(ctx, len(spans), outcome)
	return err
}
