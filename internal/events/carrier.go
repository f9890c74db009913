package events

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
)

// Carrier carries an OpenTelemetry context in the header of a message, under lower-case keys.
//
// propagation.HeaderCarrier would write "Traceparent", for http.Header makes keys canonical; nats.Header is case-sensitive,
// and the server's message tracing and other languages' clients look for "traceparent".
type Carrier nats.Header

var _ propagation.TextMapCarrier = Carrier(nil)

// Get gives the value under the key, in whatever case the sender wrote it, or "".
func (c Carrier) Get(key string) string { return first(nats.Header(c), key) }

// Set replaces the value under the lower-case key.
func (c Carrier) Set(key, value string) { c[strings.ToLower(key)] = []string{value} }

// Keys lists the keys as they were written.
func (c Carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}

// first gives the first value under the lower-case key, and falls back to a scan that ignores case.
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

// The keys of the W3C trace context, in the header of a message and, as extensions, in the event.
const (
	traceparentKey = "traceparent"
	tracestateKey  = "tracestate"
)

// TraceFrom gives the trace context of the span in ctx, for an event that is created in it. It is empty without a span.
func TraceFrom(ctx context.Context) TraceContext {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return TraceContext{Parent: carrier[traceparentKey], State: carrier[tracestateKey]}
}

// Context gives a context whose remote parent is this trace context, or ctx where that is empty or not valid.
func (t TraceContext) Context(ctx context.Context) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparentKey: t.Parent, tracestateKey: t.State})
}
