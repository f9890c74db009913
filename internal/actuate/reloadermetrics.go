package actuate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/telemetry/instrument"
	"github.com/keyturn/keyturn/internal/workload"
)

// reloaderMetrics are metrics with the names and labels of Reloader, for dashboards and alerts that were made for it. Rules in deploy/monitoring
// record others of its metrics from Keyturn's own.
type reloaderMetrics struct {
	kinds workload.Kinds

	reloads     metric.Int64Counter
	byNamespace metric.Int64UpDownCounter
	actions     metric.Int64Counter
}

func (m *reloaderMetrics) instruments() []instrument.Instrument {
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

// reloaded counts a patch that succeeded and rolls.
func (m *reloaderMetrics) reloaded(ctx context.Context, id events.Workload) {
	m.count(ctx, id, "true", "success")
}

// failed counts a patch that failed.
func (m *reloaderMetrics) failed(ctx context.Context, id events.Workload) {
	m.count(ctx, id, "false", "error")
}

func (m *reloaderMetrics) count(ctx context.Context, id events.Workload, success, result string) {
	succeeded := attribute.String("success", success)
	kind, _ := m.kinds.Named(id.Kind)
	m.reloads.Add(ctx, 1, metric.WithAttributes(succeeded))
	m.byNamespace.Add(ctx, 1, metric.WithAttributes(succeeded, attribute.String("namespace", id.Namespace)))
	m.actions.Add(ctx, 1, metric.WithAttributes(attribute.String("workload_kind", kind.Title), attribute.String("result", result)))
}
