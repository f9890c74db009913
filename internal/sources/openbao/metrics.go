package openbao

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

type metrics struct {
	auditLines    metric.Int64Counter
	polls         metric.Int64Counter
	lastPoll      metric.Int64ObservableGauge
	lastAuditLine metric.Int64ObservableGauge
}

// instruments defines every metric. The label store has one value for each store of the configuration.
func (m *metrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{
		{
			Counter: &m.auditLines, Name: "keyturn.openbao.audit.lines", Unit: "{line}", Labels: []string{"store", "result"},
			About: "Lines of a store's audit log, by how they were handled.",
		},
		{
			Counter: &m.polls, Name: "keyturn.openbao.polls", Unit: "{poll}", Labels: []string{"store", "result"},
			About: "Polls of a store's metadata, by result: success or failure.",
		},
		{
			Gauge: &m.lastPoll, Name: "keyturn.openbao.poll.last", Unit: "s", Labels: []string{"store"},
			About: "Time of the last successful poll of a store, in seconds since 1970.",
		},
		{
			Gauge: &m.lastAuditLine, Name: "keyturn.openbao.audit.last", Unit: "s", Labels: []string{"store"},
			About: "Time of the last line received from a store's audit log, or of the start before the first one, in seconds since 1970. " +
				"Absent for a store that has no audit token here.",
		},
	}
}

// Instruments returns the definitions of the metrics of secret stores.
func Instruments() []instrument.Instrument { return new(metrics).instruments() }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	return m, instrument.Make(meter, m.instruments())
}

// watch reports the last poll and the last audit line of each store, by name. A store without either is left out.
func (m *metrics) watch(meter metric.Meter, statuses map[string]*status) error {
	_, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		for store, s := range statuses {
			label := metric.WithAttributes(attribute.String("store", store))
			polledAt, lineAt := s.lastSeen()
			if !polledAt.IsZero() {
				observer.ObserveInt64(m.lastPoll, polledAt.Unix(), label)
			}
			if !lineAt.IsZero() {
				observer.ObserveInt64(m.lastAuditLine, lineAt.Unix(), label)
			}
		}
		return nil
	}, m.lastPoll, m.lastAuditLine)
	if err != nil {
		return fmt.Errorf("observing: %w", err)
	}
	return nil
}

func (m *metrics) countLine(ctx context.Context, store string, result verdict) {
	m.auditLines.Add(ctx, 1, metric.WithAttributes(attribute.String("store", store), attribute.String("result", string(result))))
}

func (m *metrics) countPoll(ctx context.Context, store, result string) {
	m.polls.Add(ctx, 1, metric.WithAttributes(attribute.String("store", store), attribute.String("result", result)))
}
