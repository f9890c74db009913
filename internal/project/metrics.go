package project

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

type metrics struct{ projections metric.Int64Counter }

func (m *metrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{{
		Counter: &m.projections, Name: "keyturn.projections", Unit: "{projection}", Labels: []string{"verb", "reason"},
		About: "Reports about the fields that resources want from Secrets: applied, skipped or failed.",
	}}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []instrument.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, instrument.Make(meter, m.instruments())
}

func (m *metrics) count(ctx context.Context, r result) {
	m.projections.Add(ctx, 1, metric.WithAttributes(
		attribute.String("verb", string(r.reason.verb())), attribute.String("reason", r.reason.String())))
}
