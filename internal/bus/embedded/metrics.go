package embedded

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// gauges are the metrics of the storage, of the certificates and of the connection to a hub.
type gauges struct {
	used, limit, free, expiry, leaf metric.Int64ObservableGauge
}

func (g *gauges) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Gauge(&g.used, "keyturn.nats.storage.used", "By", "Size of the messages that the embedded NATS stores."),
		telemetry.Gauge(&g.limit, "keyturn.nats.storage.limit", "By", "Size of the messages beyond which it refuses more."),
		telemetry.Gauge(&g.free, "keyturn.nats.storage.free", "By", "Free space of the volume on which it stores them."),
		telemetry.Gauge(&g.expiry, "keyturn.nats.certificate.expiry.timestamp", "s",
			"When a certificate of the embedded NATS expires, as Unix time: that for its clients (peer client), and that for the "+
				"servers of the other actuators (peer server). Absent without TLS.", "peer"),
		telemetry.Gauge(&g.leaf, "keyturn.nats.leaf.connections", "{connection}",
			"Connections of the embedded NATS to its hub, as a leaf node. Absent if it is not a leaf node."),
	}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []telemetry.Instrument { return new(gauges).instruments() }

// Observe measures the storage, the certificates and the connection to a hub until the server is shut down. Call it at most once.
func (s *Server) Observe(meter metric.Meter) error {
	g := &gauges{}
	if err := telemetry.MakeInstruments(meter, g.instruments()); err != nil {
		return err
	}
	var err error
	s.measured, err = meter.RegisterCallback(func(ctx context.Context, observer metric.Observer) error {
		if now := s.seen.Load(); now != nil {
			observer.ObserveInt64(g.used, now.used)
			observer.ObserveInt64(g.limit, now.limit)
			observer.ObserveInt64(g.free, now.free)
		}
		for peer, presented := range map[string]*certificate{"client": s.options.certificate, "server": s.options.routes} {
			if end := presented.end(ctx); !end.IsZero() {
				observer.ObserveInt64(g.expiry, end.Unix(), metric.WithAttributes(attribute.String("peer", peer)))
			}
		}
		if s.isLeaf {
			observer.ObserveInt64(g.leaf, int64(s.server.NumLeafNodes()))
		}
		return nil
	}, g.used, g.limit, g.free, g.expiry, g.leaf)
	if err != nil {
		return fmt.Errorf("registering gauges: %w", err)
	}
	return nil
}
