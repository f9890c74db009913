package events

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TraceContext is a W3C trace context: https://www.w3.org/TR/trace-context/.
type TraceContext struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

// The keys of the W3C trace context, in a message header and as extensions of an event.
const (
	traceparentKey = "traceparent"
	tracestateKey  = "tracestate"
)

// TraceFrom returns the trace context of the span in ctx. It is empty if there is none.
func TraceFrom(ctx context.Context) TraceContext {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return TraceContext{} // as always without tracing
	}
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return TraceContext{Parent: c[traceparentKey], State: c[tracestateKey]}
}

// remote returns a new context whose remote parent is t. The propagator parses into contexts only.
func (t TraceContext) remote() context.Context { return t.Context(context.Background()) }

// Valid returns t, or an empty trace context if t is invalid. A broken trace is no reason to reject an event.
func (t TraceContext) Valid() TraceContext {
	if t.Parent == "" {
		return TraceContext{}
	}
	return TraceFrom(t.remote())
}

// Context returns a context whose remote parent is t, or ctx if t is empty or invalid.
func (t TraceContext) Context(ctx context.Context) context.Context {
	if t.Parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparentKey: t.Parent, tracestateKey: t.State})
}
