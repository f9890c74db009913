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
	// recalled says that it was read again: no consumer waits for it, and the stream delivers it to nobody else.
	recalled bool
	// open counts what holds it: pending changes of workloads, and syncs of ExternalSecrets.
	open int
	// err is why one of them failed for good. The event is then dead-lettered instead of acked.
	err error
	// again is a later delivery of the same event. The stream takes an answer to one delivery for all, so the last one answers.
	again *inFlightEvent
}

// reject has the event dead-lettered when nothing holds it any more.
func (e *inFlightEvent) reject(err error) {
	for e.again != nil && e.again.open > 0 {
		e = e.again
	}
	if e.err == nil {
		e.err = err
	}
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
	// delivered is the last delivery of each that was delivered by the consumer.
	delivered map[delivered]*inFlightEvent
}

// delivered identifies an event on the stream. A stream that was lost and made anew numbers other events as the one before did.
type delivered struct {
	seq uint64
	id  string
	// replay is that of events.Delivery.
	replay uint64
}

func (e *inFlightEvent) delivered() delivered {
	return delivered{seq: e.delivery.Seq, id: e.delivery.Change.ID(), replay: e.delivery.Replay}
}

func newInFlightEvents(tracer trace.Tracer, consumer string, metrics *metrics, now func() time.Time) *inFlightEvents {
	return &inFlightEvents{
		tracer: tracer, consumer: consumer, metrics: metrics, now: now, done: (*events.Delivery).Done,
		open: make(map[*inFlightEvent]struct{}), delivered: make(map[delivered]*inFlightEvent),
	}
}

// deliver takes a delivery of the consumer. The caller finishes or holds the event.
func (f *inFlightEvents) deliver(ctx context.Context, delivery *events.Delivery) *inFlightEvent {
	e := f.begin(ctx, delivery)
	if before := f.delivered[e.delivered()]; before != nil {
		before.again = e
	}
	f.delivered[e.delivered()] = e
	return e
}

// sources counts the sources with events that were delivered up to a sequence on the stream, and are in flight. The stream has one event of each.
func (f *inFlightEvents) sources(upTo uint64) int {
	newest := make(map[string]uint64)
	for d, e := range f.delivered {
		if d.replay != 0 {
			continue // Its request is in flight, on another stream.
		}
		on := events.Subject(e.delivery.Change.Cluster, e.delivery.Change.Source)
		newest[on] = max(newest[on], d.seq)
	}
	count := 0
	for _, seq := range newest {
		if seq <= upTo {
			count++
		}
	}
	return count
}

// recall takes an event that was read again. The caller finishes or holds it.
func (f *inFlightEvents) recall(ctx context.Context, delivery *events.Delivery) *inFlightEvent {
	e := f.begin(ctx, delivery)
	e.recalled = true
	return e
}

func (f *inFlightEvents) begin(ctx context.Context, delivery *events.Delivery) *inFlightEvent {
	e := &inFlightEvent{delivery: delivery, span: delivery.StartProcess(context.WithoutCancel(ctx), f.tracer, f.consumer)}
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

// replace drops one hold of each event whose place a later one has taken.
func (f *inFlightEvents) replace(ctx context.Context, given []replaced) {
	for _, r := range given {
		r.event.span.AddLink(trace.Link{SpanContext: r.by.span.SpanContext()})
		f.release(ctx, r.event)
	}
}

// finish acks an event, or does with it what the error asks for: see events.Delivery.Done.
func (f *inFlightEvents) finish(ctx context.Context, e *inFlightEvent, err error) {
	delete(f.open, e)
	if f.delivered[e.delivered()] == e {
		delete(f.delivered, e.delivered())
	}
	if e.again != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = events.ErrRedelivered
	}
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
