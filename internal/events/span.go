package events

import (
	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// SubjectTemplate is the subject of all changes of a kind, with names for the tokens that differ. Spans are named by it:
// there are as many names as kinds, and not as many as objects.
func SubjectTemplate(kind Kind) string {
	return changesRoot + "{cluster}." + string(kind) + ".{namespace}.{name}"
}

// SpanAttributes say of the spans that publish and process the event of this change which message it is, by the
// OpenTelemetry conventions for messaging and for CloudEvents, and what has changed. NATS has no entry in the conventions;
// its name is the custom value that they allow.
func (c Change) SpanAttributes() []attribute.KeyValue {
	return append(c.ObjectAttributes(),
		semconv.MessagingSystemKey.String("nats"),
		semconv.MessagingDestinationTemplate(SubjectTemplate(c.Source.Kind)),
		semconv.MessagingDestinationName(Subject(c.Cluster, c.Source)),
		semconv.MessagingMessageID(c.ID()),
		semconv.CloudEventsEventID(c.ID()),
		semconv.CloudEventsEventSource(sourceURI(c.Cluster, watcher)),
		semconv.CloudEventsEventSpecVersion(event.CloudEventsVersionV1),
		semconv.CloudEventsEventSubject(c.Source.SelfLink()),
		semconv.CloudEventsEventType(eventType(c.Source.Kind, c.Verb)),
	)
}

// ObjectAttributes say of a span what object has changed and how. The conventions have no attributes for Secrets and the
// other kinds of sources.
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
