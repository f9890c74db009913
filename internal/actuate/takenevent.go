package actuate

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// takenEvent is an event that the loop has taken, until no pending change and no sync of an ExternalSecret holds it any more.
type takenEvent struct {
	change events.Change
	// storedAt is when the stream stored it, and at is when the loop took it.
	storedAt, at time.Time
	// span is that of its processing, or the one that created the event if it did not come while this actuator led.
	span trace.Span
	// earlier are the spans of the events of the source that it has replaced before they were taken, the newest last.
	earlier []trace.SpanContext
	holds   int
	// finished is called once nothing holds it any more. It is nil if the event was found.
	finished func(*takenEvent)
}

// foundEvent returns the event of a change that was there before anybody asked.
func foundEvent(ctx context.Context, change events.Change, storedAt, now time.Time) *takenEvent {
	created := change.Trace.Context(ctx)
	return &takenEvent{change: change, storedAt: storedAt, at: now, span: trace.SpanFromContext(created)}
}

// Hold keeps the event for one more that is not finished with it.
func (e *takenEvent) Hold() { e.holds++ }

// Release undoes one Hold, with the reason if its holder has given up. What an admission webhook may have worded is not on the span.
func (e *takenEvent) Release(err error) {
	if rejected, ok := errors.AsType[*events.RejectError](err); ok {
		e.span.SetAttributes(semconv.ErrorTypeKey.String(rejected.Reason))
		e.span.SetStatus(codes.Error, rejected.Reason)
	} else if err != nil {
		e.span.SetStatus(codes.Error, err.Error())
	}
	e.release()
}

func (e *takenEvent) release() {
	e.holds--
	if e.holds == 0 && e.finished != nil {
		e.finished(e)
	}
}

// context returns ctx with the span of the event, and without its cancellation: an event is finished even if the loop stops.
func (e *takenEvent) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), e.span)
}
