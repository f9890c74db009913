package actuate

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// metricLabels are the attributes of what the actuator measures.
type metricLabels struct {
	reason, kind *instrument.Labels[string]
	message      *instrument.Labels[messageLabel]
	patch        *instrument.Labels[patchLabel]
	end          *instrument.Labels[endLabel]
}

// messageLabel is an operation on an event. Failure is empty if it succeeded.
type messageLabel struct {
	operation string
	kind      events.Kind
	failure   string
}

// patchLabel is a patch of a workload of a kind.
type patchLabel struct {
	kind  string
	rolls bool
}

// endLabel is how a rollout of a workload of a kind has ended, without a reason where that is no label.
type endLabel struct {
	kind   string
	verb   events.Verb
	reason string
}

func newMetricLabels() metricLabels {
	return metricLabels{
		reason:  instrument.NewLabels(func(reason string) []attribute.KeyValue { return oneLabel("reason", reason) }),
		kind:    instrument.NewLabels(func(kind string) []attribute.KeyValue { return oneLabel("kind", kind) }),
		message: instrument.NewLabels(messageLabel.labels),
		patch: instrument.NewLabels(func(p patchLabel) []attribute.KeyValue {
			return append(oneLabel("kind", p.kind), attribute.Bool("rolls", p.rolls))
		}),
		end: instrument.NewLabels(endLabel.labels),
	}
}

func oneLabel(key, value string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(key, value)}
}

// labels returns the values of messagingLabels, and why the operation failed. There is one template for each kind.
func (m messageLabel) labels() []attribute.KeyValue {
	labels := []attribute.KeyValue{
		attribute.String("messaging.system", "nats"),
		attribute.String("messaging.operation.name", m.operation),
		attribute.String("messaging.destination.template", events.SubjectTemplate(m.kind)),
	}
	if m.failure != "" {
		labels = append(labels, attribute.String("error.type", m.failure))
	}
	return labels
}

func (e endLabel) labels() []attribute.KeyValue {
	labels := append(oneLabel("kind", e.kind), attribute.String("outcome", string(e.verb)))
	if e.reason != "" {
		labels = append(labels, attribute.String("reason", e.reason))
	}
	return labels
}

// errorType returns why an operation failed, empty if it succeeded.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	if reject, ok := errors.AsType[*events.RejectError](err); ok {
		return reject.Reason
	}
	return "_OTHER" // the conventions' word for an error without a name
}
