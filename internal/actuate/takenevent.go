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

// takenEvent is an event that the loop has taken. It is finished when no pending change and no sync of an ExternalSecret holds it any more.
type takenEvent struct {
	change events.Change
	// storedAt is when the stream stored it, and at is when the loop took it.
	storedAt, at time.Time
	// span is the span of its processing. If the event arrived before this actuator led, it is the span that created the event.
	span trace.Span
	// earlier are the spans of the events that it has replaced before they were taken, the newest last.
	earlier []trace.SpanContext
	holds   int
	// finished is called once nothing holds the event any more. It is nil for a found event.
	finished func()
}

// foundEvent returns the event of a change that a new leader, or a new comparison, has found in the state.
func foundEvent(ctx context.Context, change events.Change, storedAt, now time.Time) *takenEvent {
	created := change.Trace.Context(ctx)
	return &takenEvent{change: change, storedAt: storedAt, at: now, span: trace.SpanFromContext(created)}
}

// Hold keeps the event until a matching Release.
func (e *takenEvent) Hold() { e.holds++ }

// Release undoes one Hold. Err is the error if the holder has given up. The span omits texts from admission webhooks.
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
		e.finished()
	}
}

// context returns ctx with the event's span and without its cancellation, as an event is finished even after the loop has stopped.
func (e *takenEvent) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), e.span)
}
