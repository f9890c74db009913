package sources

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// metrics contains the metrics of the watcher, without those of secret stores.
type metrics struct {
	changes, errors, lost, sent      metric.Int64Counter
	queue, sources, failing, waiting metric.Int64ObservableGauge
}

// instruments is the only definition of the metrics.
func (m *metrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Counter(&m.changes, "keyturn.watcher.events", "{event}", "Events published about sources.", "kind", "verb"),
		telemetry.Counter(&m.errors, "keyturn.watcher.publish.errors", "{error}",
			"Failed attempts to publish an event. Each is retried, unless the event can never be valid."),
		telemetry.Counter(&m.lost, "keyturn.watcher.lost", "{event}",
			"Events that the stream has lost, because it was purged, rolled back or created again. Each is published again."),
		telemetry.Counter(&m.sent, "messaging.client.sent.messages", "{message}",
			"Requests to publish an event. A failed one has an error.type, which is conflict if another watcher was faster.",
			"messaging.system", "messaging.operation.name", "messaging.destination.template", "error.type"),
		telemetry.Gauge(&m.queue, "keyturn.watcher.queue", "{source}", "Sources waiting to be compared with their last event."),
		telemetry.Gauge(&m.waiting, "keyturn.watcher.throttled", "{source}",
			"Sources whose change waits because their namespace has used up --namespace-budget. The log names the namespace."),
		telemetry.Gauge(&m.sources, "keyturn.watcher.sources", "{source}", "Watched sources that exist according to the stream.", "kind"),
		telemetry.Gauge(&m.failing, "keyturn.watcher.failing", "{source}",
			"Watched Certificates that failed to issue and ExternalSecrets that failed to sync, according to the stream.", "kind"),
	}
}

// Instruments lists the metrics of the watcher, without those of secret stores.
func Instruments() []telemetry.Instrument { return new(metrics).instruments() }

// newMetrics registers the metrics. The numbers of queued sources, and of known sources that are watched, are observed on each collection.
func newMetrics(meter metric.Meter, queued, throttled func() int, lastEvents *ledger, watched func(events.Source) bool) (*metrics, error) {
	m := &metrics{}
	if err := telemetry.MakeInstruments(meter, m.instruments()); err != nil {
		return nil, err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		observer.ObserveInt64(m.queue, int64(queued()))
		observer.ObserveInt64(m.waiting, int64(throttled()))
		for kind, count := range lastEvents.count(watched) {
			label := metric.WithAttributes(attribute.String("kind", string(kind)))
			observer.ObserveInt64(m.sources, count.existing, label)
			if kind == events.KindCertificate || kind == events.KindExternalSecret {
				observer.ObserveInt64(m.failing, count.failing, label)
			}
		}
		return nil
	}, m.queue, m.waiting, m.sources, m.failing)
	return m, err
}

// published counts a published event.
func (m *metrics) published(ctx context.Context, change events.Change) {
	m.changes.Add(ctx, 1, metric.WithAttributes(
		attribute.String("kind", string(change.Source.Kind)), attribute.String("verb", string(change.Verb))))
}

// tried counts a request to publish an event. One that succeeded has no error.type.
func (m *metrics) tried(ctx context.Context, kind events.Kind, err error) {
	labels := []attribute.KeyValue{
		attribute.String("messaging.system", "nats"), attribute.String("messaging.operation.name", "publish"),
		attribute.String("messaging.destination.template", events.SubjectTemplate(kind)),
	}
	reject, rejected := errors.AsType[*events.RejectError](err)
	switch {
	case err == nil:
	case errors.Is(err, bus.ErrConflict):
		labels = append(labels, attribute.String("error.type", "conflict"))
	case rejected:
		labels = append(labels, attribute.String("error.type", reject.Reason))
	default:
		labels = append(labels, attribute.String("error.type", "_OTHER")) // The convention's fallback value.
	}
	m.sent.Add(ctx, 1, metric.WithAttributes(labels...))
}
