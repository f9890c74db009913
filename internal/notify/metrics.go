package notify

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// result is what became of one try to send a message: a label of the metric.
type result string

const (
	resultSent    result = "sent"
	resultRetried result = "retried"
	resultRefused result = "refused"
	resultGivenUp result = "given-up"
)

type metrics struct{ notifications metric.Int64Counter }

// instruments is the one definition of what is measured. A sink is one of the few in the configuration.
func (m *metrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{{
		Counter: &m.notifications, Name: "keyturn.notifications", Unit: "{notification}", Labels: []string{"sink", "type", "result"},
		About: "Tries to send a notification: sent, retried, refused or given-up.",
	}}
}

// Instruments lists what is measured of notifications.
func Instruments() []instrument.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, instrument.Make(meter, m.instruments())
}

func (m *metrics) tried(ctx context.Context, s *sink, what result) {
	m.notifications.Add(ctx, 1, metric.WithAttributes(
		attribute.String("sink", s.name), attribute.String("type", s.kind), attribute.String("result", string(what))))
}
