package actuate

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// inFlightEvent is a delivered event that is not acked yet. It is acked only when its last pending change is released, so everything that waits
// also waits on the stream.
type inFlightEvent struct {
	delivery *events.Delivery
	// span is the span of its processing.
	span trace.Span
	// recalled says that no consumer waits for an answer, and that the stream does not redeliver it: see intake.
	recalled bool
	// open counts what holds it: pending changes of workloads, and syncs of ExternalSecrets.
	open int
	// err is why one of these failed for good. The event is then dead-lettered instead of acked.
	err error
	// again is a later delivery of the same event. The stream takes an answer to one delivery as the answer to all, so only the last one answers.
	again *inFlightEvent
}

// reject makes the event be dead-lettered once nothing holds it any more.
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
	// delivered has the last delivery of each event that the consumer delivered.
	delivered map[delivered]*inFlightEvent
	// newest is the highest sequence that was delivered.
	newest uint64
}

// delivered identifies an event on the stream. A stream that was lost and created again uses the same sequences for other events.
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

// deliver handles a delivery of the consumer. The caller finishes or holds the event.
func (f *inFlightEvents) deliver(ctx context.Context, delivery *events.Delivery) *inFlightEvent {
	e := f.begin(ctx, delivery)
	if delivery.Replay == 0 {
		f.notice(ctx, delivery)
	}
	if before := f.delivered[e.delivered()]; before != nil {
		before.again = e
	}
	f.delivered[e.delivered()] = e
	return e
}

// notice notices that the stream was lost and created again, or lost its last events: first deliveries come in the order of the stream. It leaves the
// events that the stream no longer has without an answer, because an answer names only a sequence, and another event has that now.
func (f *inFlightEvents) notice(ctx context.Context, delivery *events.Delivery) {
	if delivery.Deliveries > 1 || delivery.Seq > f.newest {
		f.newest = max(f.newest, delivery.Seq)
		return
	}
	f.newest = delivery.Seq
	for d, e := range f.delivered {
		if d.replay == 0 && d.seq >= delivery.Seq && e.delivery.StoredAt.Before(delivery.StoredAt) {
			delete(f.delivered, d)
			f.done(e.delivery, e.context(ctx), events.ErrRedelivered)
		}
	}
}

// recall handles an event that intake has recalled. The caller holds it.
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

// replace drops one hold of each event that a later one has replaced.
func (f *inFlightEvents) replace(ctx context.Context, given []replaced) {
	for _, r := range given {
		r.event.span.AddLink(trace.Link{SpanContext: r.by.span.SpanContext()})
		f.release(ctx, r.event)
	}
}

// finish acks an event if err is nil. Otherwise the error decides what happens to it: see events.Delivery.Done.
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
