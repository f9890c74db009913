package actuate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/telemetry"
	"github.com/keyturn/keyturn/internal/workload"
)

// metrics are the instruments of the actuator. Those that are observed rather than counted are in gauges.go.
type metrics struct {
	decisions, patches, patchErrors, rollouts, rejected, eventDropped, syncs, consumed, sent metric.Int64Counter
	syncsNow                                                                                 metric.Int64UpDownCounter
	changePatch, changeReady, rolloutTime, syncTime, process                                 metric.Float64Histogram

	gauges gauges
	// reloader measures nothing without --reloader metrics.
	reloader *reloaderMetrics
}

func (m *metrics) instruments() []telemetry.Instrument {
	return append([]telemetry.Instrument{
		telemetry.Counter(&m.decisions, "keyturn.decisions", "{decision}", "Decisions about the effect of a change on a workload.", "reason"),
		telemetry.Counter(&m.patches, "keyturn.patches", "{patch}",
			"Workloads patched, and whether the patch rolls or only records.", "kind", "rolls"),
		telemetry.Counter(&m.patchErrors, "keyturn.patch.errors", "{error}", "Patches that failed. Almost all are retried.", "kind"),
		telemetry.Counter(&m.rollouts, "keyturn.rollouts", "{rollout}",
			"Rollouts that have ended, and workloads whose pods have all answered a request to reload in place with 2xx (reloaded-in-place).",
			"kind", "outcome", "reason"),
		telemetry.Duration(&m.changePatch, "keyturn.change.patch.duration",
			"Time from when the watcher saw a change, or from the end of a hold, a closed window, "+
				"--reload-in-place or, with --canary, the wait for the workload that goes first, until a workload was rolled for it. "+
				"Pods that reload in place are not counted.", "kind"),
		telemetry.Duration(&m.changeReady, "keyturn.change.ready.duration",
			"Time from when the watcher saw a change, or from the end of a hold, a closed window, "+
				"--reload-in-place or, with --canary, the wait for the workload that goes first, until all pods of a workload were "+
				"ready with it. Pods that reload in place are not counted.", "kind"),
		telemetry.Duration(&m.rolloutTime, "keyturn.rollout.duration", "Time from the patch to the end of the rollout.", "kind", "outcome"),
		telemetry.Counter(&m.rejected, "keyturn.events.rejected", "{event}", "Dead-lettered events.", "reason"),
		telemetry.Counter(&m.eventDropped, "keyturn.kubernetes.events.dropped", "{event}",
			"Kubernetes Events that were dropped because too many were queued."),
		telemetry.Counter(&m.syncs, "keyturn.syncs", "{sync}",
			"Syncs of ExternalSecrets after a change of a secret that they read, by result.", "reason"),
		telemetry.UpDown(&m.syncsNow, "keyturn.syncs.active", "{sync}", "ExternalSecrets that were asked to sync and are not synced yet."),
		telemetry.Duration(&m.syncTime, "keyturn.sync.duration",
			"Time from when the watcher saw a change until the sync of an ExternalSecret for it ended.", "reason"),
		telemetry.Counter(&m.consumed, "messaging.client.consumed.messages", "{message}",
			"Events that the leader has handled. Of several events of a source that arrive at once, it handles only the last.",
			messagingLabels()...),
		telemetry.Duration(&m.process, "messaging.process.duration",
			"Time from when the leader takes an event until every workload was finished with it, including the time that rollouts were held.",
			messagingLabels()...),
		telemetry.Counter(&m.sent, "messaging.client.sent.messages", "{message}",
			"Attempts to publish an outcome. A failed one has an error.type, and is usually retried.",
			append(messagingLabels(), "error.type")...),
	}, m.gauges.instruments()...)
}

// Instruments lists the instruments of the actuator without those of ReloaderInstruments, which are off by default.
func Instruments() []telemetry.Instrument { return new(metrics).instruments() }

func newMetrics(options Options, kinds workload.Kinds) (*metrics, error) {
	m := new(metrics)
	if err := telemetry.MakeInstruments(options.Meter, m.instruments()); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		for _, reason := range failureReasons {
			// A rate misses the first value of a series, and failures are rare.
			m.rollouts.Add(context.Background(), 0, endLabels(kind.Name, events.VerbFailed, reason))
		}
	}
	meter := options.Meter
	if !options.Reloader.Metrics {
		meter = noop.NewMeterProvider().Meter("")
	}
	var err error
	if m.reloader, err = newReloaderMetrics(meter, kinds); err != nil {
		return nil, fmt.Errorf("making Reloader's metrics: %w", err)
	}
	return m, nil
}

// messagingLabels are the labels that the messaging conventions define for an operation.
func messagingLabels() []string {
	return []string{"messaging.system", "messaging.operation.name", "messaging.destination.template"}
}

// messageLabels returns the values of messagingLabels. Each kind of source has one template.
func messageLabels(operation string, kind events.Kind) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "nats"),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.destination.template", events.SubjectTemplate(kind)),
	}
}

// endLabels returns the labels of a rollout that has ended.
func endLabels(kind string, verb events.Verb, reason string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("kind", kind), attribute.String("outcome", string(verb)), attribute.String("reason", reason))
}

func (m *metrics) decided(ctx context.Context, reason plan.Reason) {
	m.decisions.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason.String())))
}

func (m *metrics) received(ctx context.Context, change events.Change) {
	m.consumed.Add(ctx, 1, metric.WithAttributes(messageLabels("receive", change.Source.Kind)...))
}

func (m *metrics) finished(ctx context.Context, change events.Change, took time.Duration) {
	m.process.Record(ctx, took.Seconds(), metric.WithAttributes(messageLabels("process", change.Source.Kind)...))
}

func (m *metrics) published(ctx context.Context, err error) {
	labels := messageLabels("publish", events.KindRollout)
	if reject, ok := errors.AsType[*events.RejectError](err); ok {
		labels = append(labels, attribute.String("error.type", reject.Reason))
	} else if err != nil {
		labels = append(labels, attribute.String("error.type", "_OTHER")) // The conventions' value for an error without a name.
	}
	m.sent.Add(ctx, 1, metric.WithAttributes(labels...))
}

func (m *metrics) patched(ctx context.Context, id events.Workload, rolls bool) {
	m.patches.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", id.Kind), attribute.Bool("rolls", rolls)))
	if rolls {
		m.reloader.count(ctx, id, "true", "success")
	}
}

// rolledFor measures the time from a change to the patch. The context carries the span of the event, so that an exemplar links to it.
func (m *metrics) rolledFor(ctx context.Context, kind string, took time.Duration) {
	m.changePatch.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("kind", kind)))
}

func (m *metrics) patchFailed(ctx context.Context, kind string) {
	m.patchErrors.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind)))
}

// retried counts a failed patch that will be retried.
func (m *metrics) retried(ctx context.Context, id events.Workload) {
	m.patchFailed(ctx, id.Kind)
	m.reloader.count(ctx, id, "false", "error")
}

// ended counts a rollout that has ended, or a reload in place. An exemplar links to the span of the context.
func (m *metrics) ended(ctx context.Context, outcome events.Outcome) {
	m.rollouts.Add(ctx, 1, endLabels(outcome.Workload.Kind, outcome.Verb, outcome.Reason))
}

func (m *metrics) rolledOut(ctx context.Context, outcome events.Outcome, took time.Duration) {
	labels := metric.WithAttributes(attribute.String("kind", outcome.Workload.Kind), attribute.String("outcome", string(outcome.Verb)))
	m.rolloutTime.Record(ctx, took.Seconds(), labels)
}

func (m *metrics) ready(ctx context.Context, kind string, took time.Duration) {
	m.changeReady.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("kind", kind)))
}

func (m *metrics) reject(ctx context.Context, reason string) {
	m.rejected.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

func (m *metrics) synced(ctx context.Context, reason string, took time.Duration) {
	label := metric.WithAttributes(attribute.String("reason", reason))
	m.syncs.Add(ctx, 1, label)
	m.syncTime.Record(ctx, took.Seconds(), label)
}
