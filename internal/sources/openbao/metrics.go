package openbao

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

type metrics struct {
	lines  metric.Int64Counter
	polls  metric.Int64Counter
	polled metric.Int64ObservableGauge
	heard  metric.Int64ObservableGauge
}

// instruments is the one definition of what is measured. A store is one of the few in the configuration.
func (m *metrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{
		{
			Counter: &m.lines, Name: "keyturn.openbao.audit.lines", Unit: "{line}", Labels: []string{"store", "result"},
			About: "Lines of the audit of a store, by what became of them.",
		},
		{
			Counter: &m.polls, Name: "keyturn.openbao.polls", Unit: "{poll}", Labels: []string{"store", "result"},
			About: "Polls of the metadata of a store: success or failure.",
		},
		{
			Gauge: &m.polled, Name: "keyturn.openbao.poll.last", Unit: "s", Labels: []string{"store"},
			About: "When a store was last polled with success, in seconds since 1970.",
		},
		{
			Gauge: &m.heard, Name: "keyturn.openbao.audit.last", Unit: "s", Labels: []string{"store"},
			About: "When a line of a store's audit was last received, in seconds since 1970.",
		},
	}
}

// Instruments lists what is measured of secret stores.
func Instruments() []instrument.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, instrument.Make(meter, m.instruments())
}

// watch shows when the stores were last heard of. A store that was not yet is left out.
func (m *metrics) watch(meter metric.Meter, stores []*store) error {
	_, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		for _, s := range stores {
			label := metric.WithAttributes(attribute.String("store", s.config.Name))
			polled, heard := s.status.times()
			if !polled.IsZero() {
				observer.ObserveInt64(m.polled, polled.Unix(), label)
			}
			if !heard.IsZero() {
				observer.ObserveInt64(m.heard, heard.Unix(), label)
			}
		}
		return nil
	}, m.polled, m.heard)
	if err != nil {
		return fmt.Errorf("observing: %w", err)
	}
	return nil
}

func (m *metrics) line(ctx context.Context, store string, result verdict) {
	m.lines.Add(ctx, 1, metric.WithAttributes(attribute.String("store", store), attribute.String("result", string(result))))
}

func (m *metrics) poll(ctx context.Context, store, result string) {
	m.polls.Add(ctx, 1, metric.WithAttributes(attribute.String("store", store), attribute.String("result", result)))
}
