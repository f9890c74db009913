package project

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
)

// cause is the change of a Secret. It is acked when every resource that wants the Secret has been processed, or reported as unavailable.
type cause struct {
	delivery *events.Delivery
	span     trace.Span
	left     atomic.Int64
}

func newCause(delivery *events.Delivery, span trace.Span, resources int) *cause {
	c := &cause{delivery: delivery, span: span}
	c.left.Store(int64(resources))
	return c
}

// settled is called for each resource that has been processed.
func (c *cause) settled(ctx context.Context) {
	if c.left.Add(-1) <= 0 {
		c.delivery.Done(ctx, nil)
		c.span.End()
	}
}

// within returns ctx with the span of the newest cause, or ctx itself if there is none.
func within(ctx context.Context, causes []*cause) context.Context {
	if len(causes) == 0 {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, causes[len(causes)-1].span.SpanContext())
}
