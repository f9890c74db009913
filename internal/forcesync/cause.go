package forcesync

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// HeldEvent is an event that is not finished while something holds it.
type HeldEvent interface {
	// Hold keeps the event until one more Release.
	Hold()
	// Release undoes one Hold. The error is why whoever held it has given up, or nil.
	Release(ctx context.Context, err error)
}

// cause is an event that asks for a sync.
type cause struct {
	event HeldEvent
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
