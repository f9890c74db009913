package events

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

func TestCarrierWritesLowerCase(t *testing.T) {
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	header := nats.Header{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(t.Context(), span), carrier(header))
	if _, there := header["traceparent"]; !there || len(header) != 1 {
		t.Errorf("the header is %v", header)
	}
	got := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), carrier(header)))
	if got.TraceID() != span.TraceID() || got.SpanID() != span.SpanID() {
		t.Errorf("got %v", got)
	}
}

func TestCarrierReadsAnyCase(t *testing.T) {
	carrier := carrier{"Traceparent": {"a"}, "empty": nil}
	if got := carrier.Get("traceparent"); got != "a" {
		t.Errorf("got %q", got)
	}
	if got := carrier.Get("empty"); got != "" {
		t.Errorf("got %q", got)
	}
	carrier.Set("TraceParent", "b")
	if got := carrier.Get("traceparent"); got != "b" {
		t.Errorf("the sender's own case wins over what was set: %q", got)
	}
	keys := carrier.Keys()
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"Traceparent", "empty", "traceparent"}) {
		t.Errorf("got %v", keys)
	}
}
