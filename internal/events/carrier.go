package events

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// carrier propagates an OpenTelemetry context in a message header, under lower-case keys.
//
// propagation.HeaderCarrier would write "Traceparent", because http.Header canonicalizes keys. nats.Header is
// case-sensitive, and the server's message tracing and clients in other languages look for "traceparent".
type carrier nats.Header

var _ propagation.TextMapCarrier = carrier(nil)

// Get returns the value of the key, in any case, or "".
func (c carrier) Get(key string) string { return first(nats.Header(c), key) }

// Set sets the value of the key, in lower case.
func (c carrier) Set(key, value string) { c[strings.ToLower(key)] = []string{value} }

// Keys returns the keys as the sender wrote them.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}

// first returns the first value of the key. It tries the exact key, then any case.
func first(header nats.Header, key string) string {
	if values := header[key]; len(values) > 0 {
		return values[0]
	}
	for k, values := range header {
		if len(values) > 0 && strings.EqualFold(k, key) {
			return values[0]
		}
	}
	return ""
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
