package events

import (
	"context"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// SubjectTemplate returns the subject of the changes of a kind, with placeholders for the other tokens. Spans are named after
// it, because a span name must not depend on the object.
func SubjectTemplate(kind Kind) string {
	return changesRoot + "{cluster}." + string(kind) + ".{namespace}.{name}"
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

// ObjectAttributes returns the attributes of a span that say which object has changed and how. The conventions have none for
// Secrets and the other kinds of sources.
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

// StartProcess starts the span of the processing of a change with a sequence on the stream. Its parent is the span that created the event, so that
// both are in one trace. It also has a link to that span, as the messaging conventions require. An event that cannot change anything gets no span of
// its own.
func (c Change) StartProcess(ctx context.Context, tracer trace.Tracer, seq uint64) trace.Span {
	if c.ChangedAt == "" {
		return trace.SpanFromContext(ctx)
	}
	created := c.Trace.Context(ctx)
	_, span := tracer.Start(created, "process "+SubjectTemplate(c.Source.Kind),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(LinkToParent(created)...))
	if !span.IsRecording() {
		return span // Without tracing, or for a trace that is not sampled, the attributes are not needed.
	}
	span.SetAttributes(c.SpanAttributes()...)
	span.SetAttributes(
		semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"), attribute.Int64("messaging.nats.sequence", int64(seq)),
	)
	return span
}

// LinkToParent returns a link to the span in ctx, which is also the parent. The link says that it refers to the parent, because Jaeger merges it
// with the parent's own reference, and would otherwise not show a child.
func LinkToParent(ctx context.Context) []trace.Link {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	return []trace.Link{trace.LinkFromContext(ctx, semconv.OpenTracingRefTypeChildOf)}
}
