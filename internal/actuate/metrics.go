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
	decisions    metric.Int64Counter
	patches      metric.Int64Counter
	patchErrors  metric.Int64Counter
	rollouts     metric.Int64Counter
	changePatch  metric.Float64Histogram
	changeReady  metric.Float64Histogram
	rolloutTime  metric.Float64Histogram
	rejected     metric.Int64Counter
	eventDropped metric.Int64Counter
	syncs        metric.Int64Counter
	syncsNow     metric.Int64UpDownCounter
	syncTime     metric.Float64Histogram

	consumed metric.Int64Counter
	process  metric.Float64Histogram
	sent     metric.Int64Counter

	gauges gauges
	// reloader measures nothing without --reloader metrics.
	reloader *reloaderMetrics
}

func (m *metrics) instruments() []telemetry.Instrument {
	latency := telemetry.Latency()
	return append([]telemetry.Instrument{
		{
			Counter: &m.decisions, Name: "keyturn.decisions", Unit: "{decision}", Labels: []string{"reason"},
			About: "Decisions about the effect of a change on a workload.",
		},
		{
			Counter: &m.patches, Name: "keyturn.patches", Unit: "{patch}", Labels: []string{"kind", "rolls"},
			About: "Workloads patched, and whether the patch rolls or only records.",
		},
		{
			Counter: &m.patchErrors, Name: "keyturn.patch.errors", Unit: "{error}", Labels: []string{"kind"},
			About: "Patches that failed. Almost all are retried.",
		},
		{
			Counter: &m.rollouts, Name: "keyturn.rollouts", Unit: "{rollout}", Labels: []string{"kind", "outcome", "reason"},
			About: "Rollouts that have ended, and workloads whose pods have all answered a request to reload in place with 2xx (reloaded-in-place).",
		},
		{
			Histogram: &m.changePatch, Name: "keyturn.change.patch.duration", Unit: "s", Labels: []string{"kind"}, Buckets: latency,
			About: "Time from when the watcher saw a change, or from the end of a hold, a closed window, " +
				"--reload-in-place or, with --canary, the wait for the workload that goes first, until a workload was rolled for it. " +
				"Pods that reload in place are not counted.",
		},
		{
			Histogram: &m.changeReady, Name: "keyturn.change.ready.duration", Unit: "s", Labels: []string{"kind"}, Buckets: latency,
			About: "Time from when the watcher saw a change, or from the end of a hold, a closed window, " +
				"--reload-in-place or, with --canary, the wait for the workload that goes first, until all pods of a workload were " +
				"ready with it. Pods that reload in place are not counted.",
		},
		{
			Histogram: &m.rolloutTime, Name: "keyturn.rollout.duration", Unit: "s", Labels: []string{"kind", "outcome"}, Buckets: latency,
			About: "Time from the patch to the end of the rollout.",
		},
		{Counter: &m.rejected, Name: "keyturn.events.rejected", Unit: "{event}", Labels: []string{"reason"}, About: "Dead-lettered events."},
		{
			Counter: &m.eventDropped, Name: "keyturn.kubernetes.events.dropped", Unit: "{event}",
			About: "Kubernetes Events that were dropped because too many were queued.",
		},
		{
			Counter: &m.syncs, Name: "keyturn.syncs", Unit: "{sync}", Labels: []string{"reason"},
			About: "Syncs of ExternalSecrets after a change of a secret that they read, by result.",
		},
		{
			UpDown: &m.syncsNow, Name: "keyturn.syncs.active", Unit: "{sync}",
			About: "ExternalSecrets that were asked to sync and are not synced yet.",
		},
		{
			Histogram: &m.syncTime, Name: "keyturn.sync.duration", Unit: "s", Labels: []string{"reason"}, Buckets: latency,
			About: "Time from when the watcher saw a change until the sync of an ExternalSecret for it ended.",
		},
		{
			Counter: &m.consumed, Name: "messaging.client.consumed.messages", Unit: "{message}", Labels: messagingLabels(),
			About: "Events that the leader has handled. Of several events of a source that arrive at once, it handles only the last.",
		},
		{
			Histogram: &m.process, Name: "messaging.process.duration", Unit: "s", Buckets: latency, Labels: messagingLabels(),
			About: "Time from when the leader takes an event until every workload was finished with it, including the time that rollouts were held.",
		},
		{
			Counter: &m.sent, Name: "messaging.client.sent.messages", Unit: "{message}", Labels: append(messagingLabels(), "error.type"),
			About: "Attempts to publish an outcome. A failed one has an error.type, and is usually retried.",
		},
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
