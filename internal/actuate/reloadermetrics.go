package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/telemetry/instrument"
	"github.com/keyturn/keyturn/internal/workload"
)

// reloaderMetrics are metrics with the names and labels of Reloader, for dashboards and alerts that were made for it. Its two about requests
// to the API server are in telemetry. What Reloader keeps in a work queue in memory, Keyturn reads from the workloads.
type reloaderMetrics struct {
	kinds workload.Kinds

	reloads     metric.Int64Counter
	byNamespace metric.Int64UpDownCounter
	actions     metric.Int64Counter
	latency     metric.Float64Histogram
	skips       metric.Int64Counter
	reconciles  metric.Int64Counter
	reconcile   metric.Float64Histogram
	arrivals    metric.Int64Counter
	processed   metric.Int64Counter
	scanned     metric.Int64Counter
	matched     metric.Int64Counter
	depth       metric.Int64ObservableGauge
	adds        metric.Int64Counter
	waits       metric.Float64Histogram
	failures    metric.Int64Counter
	retries     metric.Int64Counter
}

func (m *reloaderMetrics) instruments() []instrument.Instrument {
	latency := instrument.Latency()
	return []instrument.Instrument{
		{
			Counter: &m.reloads, Name: "reloader.reload.executed", Labels: []string{"success"},
			About: "Patches that rolled a workload, and those that failed.",
		},
		{
			// The name of a counter cannot continue after its total, so this is an up-down counter.
			UpDown: &m.byNamespace, Name: "reloader.reload.executed.total.by.namespace", Labels: []string{"success", "namespace"},
			About: "The same, by the namespace of the workload.",
		},
		{
			Counter: &m.actions, Name: "reloader.action", Labels: []string{"workload_kind", "result"},
			About: "The same, by the kind of the workload.",
		},
		{
			Histogram: &m.latency, Name: "reloader.action.latency", Unit: "s", Labels: []string{"workload_kind"}, Buckets: latency,
			About: "Time from when the watcher saw a change until the workload was patched. Reloader starts to measure later.",
		},
		{
			Counter: &m.skips, Name: "reloader.skipped", Labels: []string{"reason"},
			About: "Changes for which a workload was not rolled. The reasons are Keyturn's.",
		},
		{
			Counter: &m.reconciles, Name: "reloader.reconcile", Labels: []string{"result"},
			About: "Events that every workload is finished with: success.",
		},
		{
			Histogram: &m.reconcile, Name: "reloader.reconcile.duration", Unit: "s", Labels: []string{"result"}, Buckets: latency,
			About: "Time from when the actuator takes an event until then.",
		},
		{
			Counter: &m.arrivals, Name: "reloader.events.received", Labels: []string{"event_type", "resource_type"},
			About: "Events that were taken: add, update or delete of configmaps, secrets or other sources.",
		},
		{
			Counter: &m.processed, Name: "reloader.events.processed", Labels: []string{"event_type", "resource_type", "result"},
			About: "Events that every workload is finished with.",
		},
		{
			Counter: &m.scanned, Name: "reloader.workloads.scanned", Labels: []string{"kind"},
			About: "Workloads that were looked at for an event. The index finds the dependents, so these are all that match.",
		},
		{
			Gauge: &m.depth, Name: "reloader.workqueue.depth",
			About: "Workloads with a change that is not decided yet, held ones included.",
		},
		{
			Counter: &m.adds, Name: "reloader.workqueue.adds",
			About: "Events that were taken.",
		},
		{
			Histogram: &m.waits, Name: "reloader.workqueue.latency", Unit: "s", Buckets: latency,
			About: "Time from when the watcher saw a change until the actuator took up its event.",
		},
		{
			Counter: &m.matched, Name: "reloader.workloads.matched", Labels: []string{"kind"},
			About: "Workloads that depend on the source of an event.",
		},
		{
			Counter: &m.failures, Name: "reloader.errors", Labels: []string{"type"},
			About: "Failed patches, and dead-lettered events.",
		},
		{
			Counter: &m.retries, Name: "reloader.retries",
			About: "Patches that are retried.",
		},
	}
}

// ReloaderInstruments lists the instruments of --reloader-metrics.
func ReloaderInstruments() []instrument.Instrument { return new(reloaderMetrics).instruments() }

func newReloaderMetrics(meter metric.Meter, kinds workload.Kinds) (*reloaderMetrics, error) {
	m := &reloaderMetrics{kinds: kinds}
	if err := instrument.Make(meter, m.instruments()); err != nil {
		return nil, err
	}
	// As in Reloader, both exist from the start, so that a rate has a first value.
	for _, success := range []string{"true", "false"} {
		m.reloads.Add(context.Background(), 0, metric.WithAttributes(attribute.String("success", success)))
	}
	return m, nil
}

// received counts an event, and the workloads that depend on its source.
func (m *reloaderMetrics) received(ctx context.Context, change events.Change, waited time.Duration, dependents []*workload.Workload) {
	m.adds.Add(ctx, 1)
	m.waits.Record(ctx, waited.Seconds())
	m.arrivals.Add(ctx, 1, metric.WithAttributes(reloaderEvent(change)...))
	for _, w := range dependents {
		kind := metric.WithAttributes(attribute.String("kind", m.title(w.ID.Kind)))
		m.scanned.Add(ctx, 1, kind)
		m.matched.Add(ctx, 1, kind)
	}
}

// rejected counts a dead-lettered event.
func (m *reloaderMetrics) rejected(ctx context.Context) {
	m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("type", "event")))
}

// finished measures an event that nothing holds any more.
func (m *reloaderMetrics) finished(ctx context.Context, change events.Change, took time.Duration) {
	result := attribute.String("result", "success")
	m.reconciles.Add(ctx, 1, metric.WithAttributes(result))
	m.reconcile.Record(ctx, took.Seconds(), metric.WithAttributes(result))
	m.processed.Add(ctx, 1, metric.WithAttributes(append(reloaderEvent(change), result)...))
}

func (m *reloaderMetrics) decided(ctx context.Context, reason plan.Reason) {
	if reason.Action() == plan.Skip {
		m.skips.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason.String())))
	}
}

// reloaded counts a patch that succeeded and rolls.
func (m *reloaderMetrics) reloaded(ctx context.Context, id events.Workload) {
	m.count(ctx, id, true)
}

// rolledFor measures the time from a change to the patch that rolls for it.
func (m *reloaderMetrics) rolledFor(ctx context.Context, id events.Workload, took time.Duration) {
	m.latency.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("workload_kind", m.title(id.Kind))))
}

// failed counts a patch that failed.
func (m *reloaderMetrics) failed(ctx context.Context, id events.Workload) {
	m.count(ctx, id, false)
	m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("type", "patch")))
}

// retried counts a patch that is going to be retried.
func (m *reloaderMetrics) retried(ctx context.Context) {
	m.retries.Add(ctx, 1)
}

func (m *reloaderMetrics) count(ctx context.Context, id events.Workload, succeeded bool) {
	success, result := attribute.String("success", "true"), attribute.String("result", "success")
	if !succeeded {
		success, result = attribute.String("success", "false"), attribute.String("result", "error")
	}
	m.reloads.Add(ctx, 1, metric.WithAttributes(success))
	m.byNamespace.Add(ctx, 1, metric.WithAttributes(success, attribute.String("namespace", id.Namespace)))
	m.actions.Add(ctx, 1, metric.WithAttributes(attribute.String("workload_kind", m.title(id.Kind)), result))
}

// title returns the kind of a workload as Reloader writes it: Deployment.
func (m *reloaderMetrics) title(name string) string {
	k, _ := m.kinds.Named(name)
	return k.Title
}

// reloaderEvent returns the labels of an event.
func reloaderEvent(change events.Change) []attribute.KeyValue {
	eventType := "update"
	switch {
	case change.Verb == events.VerbDeleted:
		eventType = "delete"
	case change.Created || change.Verb == events.VerbObserved:
		eventType = "add"
	}
	resource := string(change.Source.Kind) + "s"
	if change.Source.Kind == events.KindSecretProviderClass {
		resource = "secretproviderclasspodstatuses"
	}
	return []attribute.KeyValue{attribute.String("event_type", eventType), attribute.String("resource_type", resource)}
}
