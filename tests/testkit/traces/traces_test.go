package traces

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/keyturn/keyturn/tests/testbed"
)

func attribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// sent is what a program sends of a cluster.
func sent(service string, spans ...*otlp.Span) *collector.ExportTraceServiceRequest {
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &resource.Resource{Attributes: []*common.KeyValue{attribute(serviceName, service), attribute("k8s.cluster.name", "prod")}},
		ScopeSpans: []*otlp.ScopeSpans{{Spans: spans}},
	}}}
}

func TestATraceHasTheSpansOfAllPrograms(t *testing.T) {
	r := &Receiver{}
	one, other := []byte{1}, []byte{2}
	r.add(sent("actuator", &otlp.Span{
		TraceId: one, SpanId: []byte{0x11}, ParentSpanId: []byte{0x10}, Name: "process", Kind: otlp.Span_SPAN_KIND_CONSUMER,
		StartTimeUnixNano: 2_000_000, EndTimeUnixNano: 5_000_000, Status: &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR},
	}))
	r.add(sent("watcher",
		&otlp.Span{TraceId: one, SpanId: []byte{0x10}, Name: "detect", StartTimeUnixNano: 1_000_000, EndTimeUnixNano: 1_500_000, Attributes: []*common.KeyValue{attribute("of", "db")}},
		&otlp.Span{TraceId: other, SpanId: []byte{0x20}, Name: "detect", StartTimeUnixNano: 3_000_000, EndTimeUnixNano: 4_000_000, Attributes: []*common.KeyValue{attribute("of", "app")}},
	))
	got, err := r.Traces(t.Context(), "watcher", map[string]string{"of": "db"})
	if err != nil {
		t.Fatal(err)
	}
	want := []testbed.Trace{{ID: "01", Spans: []testbed.Span{
		{
			ID: "10", Service: "watcher", Operation: "detect", Start: time.UnixMicro(1000), Duration: 500 * time.Microsecond,
			Resource: map[string]string{"k8s.cluster.name": "prod"}, Tags: map[string]string{"of": "db", "span.kind": "unspecified"},
		},
		{
			ID: "11", Parent: "10", Service: "actuator", Operation: "process", Start: time.UnixMicro(2000), Duration: 3 * time.Millisecond,
			Resource: map[string]string{"k8s.cluster.name": "prod"},
			Tags:     map[string]string{"span.kind": "consumer", "error": "true", "otel.status_code": "ERROR"},
		},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traces of db (-want +got):\n%s", diff)
	}
}
