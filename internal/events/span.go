package events

import (
	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// SubjectTemplate returns the subject of the changes of a kind with placeholders for its other tokens. Spans are named by
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
