package events

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// TraceContext is a W3C trace context: https://www.w3.org/TR/trace-context/.
type TraceContext struct {
	Parent, State string // the headers traceparent and tracestate
}

// The keys of the W3C trace context, in a message header and as extensions of an event.
const (
	TraceparentKey = "traceparent"
	TracestateKey  = "tracestate"
)

// TraceFrom returns the trace context of the span in ctx. It is empty if there is no span.
func TraceFrom(ctx context.Context) TraceContext {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return TraceContext{} // the usual case, without tracing
	}
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return TraceContext{Parent: c[TraceparentKey], State: c[TracestateKey]}
}

// remote returns a new context whose remote parent is t. The propagator parses only into contexts.
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
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{TraceparentKey: t.Parent, TracestateKey: t.State})
}

// traceIDPlaceholder stands for the trace id in a link template.
const traceIDPlaceholder = "{traceID}"

// ID returns the trace id in 32 hexadecimal digits, as tracing backends use it, or "" if there is no trace.
func (t TraceContext) ID() string {
	if id := t.SpanContext().TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// SpanContext returns the context of the span. It is invalid if there is none.
func (t TraceContext) SpanContext() trace.SpanContext {
	return trace.SpanContextFromContext(t.remote())
}

// Link returns the URL of the trace in a tracing backend, made from the template. It is "" without a template or a trace.
func (t TraceContext) Link(template string) string {
	id := t.ID()
	if template == "" || id == "" {
		return ""
	}
	return strings.ReplaceAll(template, traceIDPlaceholder, id)
}

// ValidateTraceURL checks a template for [TraceContext.Link]. The empty template is valid and disables links.
func ValidateTraceURL(template string) error {
	if template == "" {
		return nil
	}
	parsed, err := url.Parse(strings.ReplaceAll(template, traceIDPlaceholder, "0"))
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" ||
		!strings.Contains(template, traceIDPlaceholder) {
		return fmt.Errorf("%q, want an http:// or https:// URL with %s", template, traceIDPlaceholder)
	}
	return nil
}

// traceparent is TraceContext.Parent in binary form: the trace ID, the span ID and the flags. The zero value means none.
type traceparent [16 + 8 + 1]byte

// newTraceparent returns the zero value for a text that does not have the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>.
func newTraceparent(text string) (t traceparent) {
	if len(text) != 55 || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return traceparent{}
	}
	if _, err := hex.Decode(t[:], []byte(text[3:35]+text[36:52]+text[53:])); err != nil {
		return traceparent{}
	}
	return t
}

func (t traceparent) text() string {
	if t == (traceparent{}) {
		return ""
	}
	return fmt.Sprintf("00-%x-%x-%x", t[:16], t[16:24], t[24:])
}

// SubjectTemplate returns the subject of the changes of a kind with placeholders, for span names, which must not depend on the object.
func SubjectTemplate(kind Kind) string {
	return ChangesRoot + "{cluster}." + string(kind) + ".{namespace}.{name}"
}

// SpanAttributes returns the attributes of the spans that publish and process the event: those of OpenTelemetry's
// conventions for messaging and CloudEvents, and ObjectAttributes. The conventions do not list NATS, but allow custom systems.
func (c Change) SpanAttributes() []attribute.KeyValue {
	return append(c.ObjectAttributes(),
		semconv.MessagingSystemKey.String("nats"),
		semconv.MessagingDestinationTemplate(SubjectTemplate(c.Source.Kind)),
		semconv.MessagingDestinationName(Subject(c.Cluster, c.Source)),
		semconv.MessagingMessageID(c.ID()),
		semconv.CloudEventsEventID(c.ID()),
		semconv.CloudEventsEventSource(sourceURI(c.Cluster, watcher)),
		semconv.CloudEventsEventSpecVersion(event.CloudEventsVersionV1),
		semconv.CloudEventsEventSubject(c.Source.selfLink()),
		semconv.CloudEventsEventType(eventType(c.Source.Kind, c.Verb)),
	)
}

// ObjectAttributes returns the span attributes about the changed object and the change, for which the conventions have none.
func (c Change) ObjectAttributes() []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 16)
	if c.Source.Namespace != "" {
		attributes = append(attributes, semconv.K8SNamespaceName(c.Source.Namespace))
	}
	return append(attributes,
		attribute.String("keyturn.object.kind", string(c.Source.Kind)),
		attribute.String("keyturn.object.name", c.Source.Name),
		attribute.String("keyturn.object.uid", c.UID),
		attribute.String("keyturn.verb", string(c.Verb)),
	)
}

// StartProcess starts the span of the processing of a change with a sequence on the stream. Its parent, to which it also has a link, is the span that
// created the event. An event without any effect gets no span of its own.
func (c Change) StartProcess(ctx context.Context, tracer trace.Tracer, seq uint64) trace.Span {
	if c.ChangedAt == "" {
		return trace.SpanFromContext(ctx)
	}
	created := c.Trace.Context(ctx)
	_, span := tracer.Start(created, "process "+SubjectTemplate(c.Source.Kind),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(LinkToParent(created)...))
	if !span.IsRecording() {
		return span // Without tracing, or for a trace that is not sampled, skip the attributes.
	}
	span.SetAttributes(c.SpanAttributes()...)
	span.SetAttributes(
		semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"), attribute.Int64("messaging.nats.sequence", int64(seq)),
	)
	return span
}

// LinkToParent returns a link to the span in ctx, which is also the parent. The link is marked as a reference to the parent, because Jaeger then
// merges it with the parent's own reference; otherwise, it would not show a child.
func LinkToParent(ctx context.Context) []trace.Link {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	return []trace.Link{trace.LinkFromContext(ctx, semconv.OpenTracingRefTypeChildOf)}
}
