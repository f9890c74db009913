package telemetry

import (
	"context"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// spanQueue is the SDK's batch processor, with a count of exported, failed and dropped spans. The SDK drops spans silently when its queue
// is full; spanQueue applies the same bound first, so that every drop is counted.
type spanQueue struct {
	sdktrace.SpanProcessor
	limit   int64
	pending *atomic.Int64 // spans in the queue and in the batch being exported
	spans   metric.Int64Counter
}

// spanCounter holds the counter of spans.
type spanCounter struct{ spans metric.Int64Counter }

func (c *spanCounter) instruments() []instrument.Instrument {
	return []instrument.Instrument{{
		Counter: &c.spans, Name: "keyturn.telemetry.spans", Unit: "{span}", Labels: []string{"outcome"},
		About: "Spans, by outcome: exported, failed or dropped.",
	}}
}

// newSpanQueue returns a processor that queues spans for the exporter.
func newSpanQueue(exporter sdktrace.SpanExporter, meters metric.MeterProvider) (*spanQueue, error) {
	counter := &spanCounter{}
	if err := instrument.Make(meters.Meter(scope), counter.instruments()); err != nil {
		return nil, err
	}
	spans := counter.spans
	limit := queueLimit()
	pending := new(atomic.Int64)
	return &spanQueue{
		SpanProcessor: sdktrace.NewBatchSpanProcessor(
			&countingExporter{SpanExporter: exporter, pending: pending, spans: spans},
			sdktrace.WithMaxQueueSize(limit),
		),
		limit:   int64(limit),
		pending: pending,
		spans:   spans,
	}, nil
}

// queueLimit returns how many spans may wait, from the standard variable. A value that is not a positive number counts as unset.
func queueLimit() int {
	limit, err := strconv.Atoi(env("OTEL_BSP_MAX_QUEUE_SIZE"))
	if err != nil || limit <= 0 {
		return sdktrace.DefaultMaxQueueSize
	}
	return limit
}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (q *spanQueue) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.pending.Add(1) > q.limit {
		q.pending.Add(-1)
		count(context.Background(), q.spans, 1, "dropped")
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// countingExporter counts spans as they leave the queue.
type countingExporter struct {
	sdktrace.SpanExporter
	pending *atomic.Int64
	spans   metric.Int64Counter
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.pending.Add(-int64(len(spans)))
	outcome := "exported"
	if err != nil {
		outcome = "failed"
	}
	count(ctx, e.spans, len(spans), outcome)
	return err
}

// count counts n spans under an outcome.
func count(ctx context.Context, spans metric.Int64Counter, n int, outcome string) {
	spans.Add(ctx, int64(n), metric.WithAttributes(attribute.String("outcome", outcome)))
}
