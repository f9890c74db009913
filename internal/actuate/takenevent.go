package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// takenEvent is an event that the loop has taken, until nothing holds it any more: no pending change of a workload, and no sync of an ExternalSecret.
type takenEvent struct {
	change events.Change
	// storedAt is when the stream stored it, and at is when the loop took it.
	storedAt, at time.Time
	// span is the span of its processing. If the event was found, and did not come while this actuator led, it is the span that created the event.
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

// Release undoes one Hold. The error is why whoever held it has given up.
func (e *takenEvent) Release(_ context.Context, err error) {
	if err != nil {
		recordError(e.span, err)
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
