package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// countTimeout bounds one count.
const countTimeout = time.Minute

// FleetWatch counts, for a metric, the messages that the servers of a hub's clusters have delivered on subjects of other clusters. Create one with
// NewFleetWatch.
type FleetWatch struct {
	stream string
	logger *slog.Logger
	// foreign has the last counts, by cluster. It is nil if counting failed.
	foreign atomic.Pointer[map[string]uint64]
}

// fleetMetrics has the metrics of a FleetWatch.
type fleetMetrics struct{ foreign metric.Int64ObservableGauge }

func (m *fleetMetrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{{
		Gauge: &m.foreign, Name: "keyturn.fleet.foreign", Unit: "{message}", Labels: []string{"from_cluster"},
		About: "Messages that the NATS server of a cluster has delivered to the hub within a day on subjects of other clusters. FLEET does not " +
			"take them. Only with --fleet-stream; absent while the hub does not answer, and for a cluster from which FLEET takes directly.",
	}}
}

// NewFleetWatch returns a FleetWatch for a stream with the events of many clusters, such as FLEET. It stays registered with the meter for as long
// as the program runs. A nil logger discards.
func NewFleetWatch(stream string, meter metric.Meter, logger *slog.Logger) (*FleetWatch, error) {
	w, m := &FleetWatch{stream: stream, logger: orDiscard(logger)}, &fleetMetrics{}
	if err := instrument.Make(meter, m.instruments()); err != nil {
		return nil, err
	}
	_, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		if counted := w.foreign.Load(); counted != nil {
			for cluster, count := range *counted {
				observer.ObserveInt64(m.foreign, int64(count), metric.WithAttributes(attribute.String("from_cluster", cluster)))
			}
		}
		return nil
	}, m.foreign)
	if err != nil {
		return nil, fmt.Errorf("registering gauges: %w", err)
	}
	return w, nil
}

// Run counts immediately and after each interval, until ctx is done.
func (w *FleetWatch) Run(ctx context.Context, nc *nats.Conn, interval time.Duration) {
	_ = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		bounded, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		foreign, err := foreignOf(bounded, nc, w.stream)
		if err != nil && ctx.Err() == nil {
			w.logger.WarnContext(ctx, "cannot count what clusters deliver on subjects of others", "stream", w.stream, "err", err)
		}
		w.foreign.Store(foreign)
		return false, nil
	})
}

// foreignOf returns Member.Foreign for each cluster of a stream that is checked. The result is nil if there is an error.
func foreignOf(ctx context.Context, nc *nats.Conn, stream string) (*map[string]uint64, error) {
	reader, err := OpenFleet(ctx, nc, stream)
	if err != nil {
		return nil, err
	}
	members, err := reader.sourced(ctx)
	if err != nil {
		return nil, err
	}
	foreign := make(map[string]uint64)
	for cluster, member := range members {
		if member.Checked {
			foreign[cluster] = member.Foreign
		}
	}
	return &foreign, nil
}
