package forcesync

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// InFlight is an event that something is not finished with.
type InFlight interface {
	// Hold keeps the event in flight until one more Release.
	Hold()
	// Release undoes one Hold. The error is why that has been given up, or nil.
	Release(ctx context.Context, err error)
}

// cause is an event that asks for a sync.
type cause struct {
	event InFlight
	// span is the span of the event's processing.
	span trace.Span
}

// release undoes the hold of each event.
func release(ctx context.Context, causes []cause, err error) {
	for _, c := range causes {
		c.event.Release(ctx, err)
	}
}

// context returns ctx with the span of the event's processing.
func (c cause) context(ctx context.Context) context.Context {
	return trace.ContextWithSpan(ctx, c.span)
}
