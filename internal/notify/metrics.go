package notify

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// result is the result of one attempt to send a message. It is a metric label.
type result string

const (
	resultSent    result = "sent"
	resultRetried result = "retried"
	resultParked  result = "parked"
	resultRefused result = "refused"
	resultGivenUp result = "given-up"
	// resultLost means that there will be no further attempt, because the outcome is gone.
	resultLost result = "lost"
)

type metrics struct{ notifications metric.Int64Counter }

// instruments defines what is measured. The label sink has few values: the sinks of the configuration.
func (m *metrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{{
		Counter: &m.notifications, Name: "keyturn.notifications", Unit: "{notification}", Labels: []string{"sink", "type", "result"},
		About: "Attempts to send a notification: sent, retried soon, parked to be retried later, refused or given-up. " +
			"And parked ones that are lost because HISTORY has dropped their outcome.",
	}}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []instrument.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, instrument.Make(meter, m.instruments())
}

// lost counts messages that can no longer be sent.
func (m *metrics) lost(ctx context.Context, sink, kind string, count int) {
	m.notifications.Add(ctx, int64(count), metric.WithAttributes(
		attribute.String("sink", sink), attribute.String("type", kind), attribute.String("result", string(resultLost))))
}

// attempt counts one attempt of a sink.
func (m *metrics) attempt(ctx context.Context, sink, kind string, result result) {
	m.notifications.Add(ctx, 1, metric.WithAttributes(
		attribute.String("sink", sink), attribute.String("type", kind), attribute.String("result", string(result))))
}
