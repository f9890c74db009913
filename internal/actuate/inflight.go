package actuate

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// inFlightEvent is a delivered event that is not acked yet. It is acked when its last pending change is released, and not
// before: so whatever waits, waits on the stream as well.
type inFlightEvent struct {
	delivery *events.Delivery
	// span is that of its processing.
	span trace.Span
	// open counts what holds it: pending changes of workloads, and syncs of ExternalSecrets.
	open int
	// err is why one of them failed for good. The event is then dead-lettered instead of acked.
	err error
}

// context returns ctx with the span of the event, and without its cancellation: an event is finished even if the loop stops.
func (e *inFlightEvent) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), e.span)
}

// inFlightEvents are the events that are delivered and not acked.
type inFlightEvents struct {
	tracer trace.Tracer
	// consumer is the name of the durable consumer, for spans.
	consumer string
	metrics  *metrics
	now      func() time.Time
	// done is events.Delivery.Done.
	done func(*events.Delivery, context.Context, error)
	open map[*inFlightEvent]struct{}
}

func newInFlightEvents(tracer trace.Tracer, consumer string, metrics *metrics, now func() time.Time) *inFlightEvents {
	return &inFlightEvents{
		tracer: tracer, consumer: consumer, metrics: metrics, now: now, done: (*events.Delivery).Done,
		open: make(map[*inFlightEvent]struct{}),
	}
}

// begin takes a delivery. The caller finishes or holds the event.
func (f *inFlightEvents) begin(ctx context.Context, delivery *events.Delivery) *inFlightEvent {
	e := &inFlightEvent{delivery: delivery, span: startProcess(context.WithoutCancel(ctx), f.tracer, f.consumer, delivery)}
	f.open[e] = struct{}{}
	return e
}

// release drops one hold of an event, and finishes it if it has none left.
func (f *inFlightEvents) release(ctx context.Context, e *inFlightEvent) {
	e.open--
	if e.open == 0 {
		f.finish(ctx, e, e.err)
	}
}

// replace drops one hold of each event whose place a later one has taken. If that is the same event, delivered again, it is the one to answer:
// the stream takes an answer to either delivery for both.
func (f *inFlightEvents) replace(ctx context.Context, given []replaced) {
	for _, r := range given {
		r.event.span.AddLink(trace.Link{SpanContext: r.by.span.SpanContext()})
		if r.event.err == nil && r.event.delivery.Seq == r.by.delivery.Seq {
			r.event.err = events.ErrRedelivered
		}
		f.release(ctx, r.event)
	}
}

// finish acks an event, or does with it what the error asks for: see events.Delivery.Done.
func (f *inFlightEvents) finish(ctx context.Context, e *inFlightEvent, err error) {
	delete(f.open, e)
	if err != nil && !errors.Is(err, events.ErrRedelivered) && ctx.Err() == nil {
		recordError(e.span, err)
	}
	ctx = e.context(ctx)
	f.metrics.finished(ctx, e.delivery.Change, f.now().Sub(e.delivery.Received), err)
	f.done(e.delivery, ctx, err)
	e.span.End()
}

// abandon naks every event that is left, so that the next leader gets it at once.
func (f *inFlightEvents) abandon(ctx context.Context) {
	for e := range f.open {
		f.finish(ctx, e, context.Canceled)
	}
}
