package testbed

import (
	"context"
	"os"
	"slices"
	"testing"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestJaegerGivesTheTracesThatItWasSent(t *testing.T) {
	jaeger, err := StartJaeger(t.Context(), JaegerOptions{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(jaeger.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", jaeger.OTLPHTTP())
	exporter, err := autoexport.NewSpanExporter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "sender"), attribute.String("service.version", "7"),
	)))
	tracer := provider.Tracer("test")
	_, other := tracer.Start(t.Context(), "other")
	other.End()
	ctx, parent := tracer.Start(t.Context(), "parent", trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.Int64("number", 1234567890)))
	_, child := tracer.Start(ctx, "child", trace.WithLinks(trace.Link{SpanContext: other.SpanContext()}))
	child.AddEvent("noticed")
	child.End()
	parent.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	id := parent.SpanContext().TraceID().String()
	query := map[string]string{"number": "1234567890"}
	testkit.Await(t, "the trace is found, with both spans", func(ctx context.Context) bool {
		found, err := jaeger.Traces(ctx, "sender", query)
		return err == nil && len(found) == 1 && len(found[0].Spans) == 2
	})
	found, err := jaeger.Traces(t.Context(), "sender", query)
	if err != nil || len(found) != 1 {
		t.Fatalf("search: got %+v, %v", found, err)
	}
	got := found[0]
	if got.ID != id || len(got.Spans) != 2 || got.Spans[0].Operation != "parent" || got.Spans[1].Operation != "child" {
		t.Fatalf("got %+v, want parent and child of trace %s", got, id)
	}
	first, second := got.Spans[0], got.Spans[1]
	if first.Parent != "" || second.Parent != first.ID || first.Tags["number"] != "1234567890" || first.Tags["span.kind"] != "consumer" ||
		first.Service != "sender" || first.Resource["service.version"] != "7" {
		t.Errorf("parent: got %+v", first)
	}
	link := SpanLink{Trace: other.SpanContext().TraceID().String(), Span: other.SpanContext().SpanID().String()}
	if !slices.Equal(second.Links, []SpanLink{link}) || !slices.Equal(second.Events, []string{"noticed"}) {
		t.Errorf("child: got %+v, want a link to %v and an event", second, link)
	}

	if services, err := jaeger.Services(t.Context()); err != nil || !slices.Equal(services, []string{"sender"}) {
		t.Errorf("services: got %q, %v", services, err)
	}
	if found, err = jaeger.Traces(t.Context(), "sender", map[string]string{"number": "1"}); err != nil || len(found) != 0 {
		t.Errorf("search for what is not there: got %+v, %v", found, err)
	}
}
