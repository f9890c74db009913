package events

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry/instrument"
)

// metrics has the metrics of the bus about its streams. The label stream has three values.
type metrics struct {
	used   metric.Int64ObservableGauge
	limit  metric.Int64ObservableGauge
	events metric.Int64ObservableGauge
	oldest metric.Int64ObservableGauge
	beyond metric.Int64Counter
}

func (m *metrics) instruments() []instrument.Instrument {
	return []instrument.Instrument{
		{
			Gauge: &m.used, Name: "keyturn.stream.used", Unit: "By", Labels: []string{"stream"},
			About: "Size of a stream. Absent while NATS is unreachable, like the following ones.",
		},
		{
			Gauge: &m.limit, Name: "keyturn.stream.limit", Unit: "By", Labels: []string{"stream"},
			About: "Size at which a stream drops its oldest events. Absent for one without a limit, such as CHANGES.",
		},
		{
			Gauge: &m.events, Name: "keyturn.stream.events", Unit: "{event}", Labels: []string{"stream"},
			About: "Events of a stream. CHANGES has one for each source, for each that was deleted in the last 24 hours, and for each workload " +
				"that was rolled in the last 30 days.",
		},
		{
			Gauge: &m.oldest, Name: "keyturn.stream.oldest", Unit: "s", Labels: []string{"stream"},
			About: "Time at which the oldest event of a stream was stored, in seconds since 1970. Absent for an empty one.",
		},
		{
			Counter: &m.beyond, Name: "keyturn.history.beyond.share", Unit: "{event}", Labels: []string{"kept"},
			About: "Events beyond the share of their namespace in HISTORY, which keeps them for an hour, or not at all (none). " +
				"The log names the namespace.",
		},
	}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []instrument.Instrument {
	return new(metrics).instruments()
}

// Observe measures the streams at each collection, for as long as the program runs. Call it before the bus publishes.
func (b *Bus) Observe(meter metric.Meter) error {
	m := &metrics{}
	if err := instrument.Make(meter, m.instruments()); err != nil {
		return err
	}
	b.share.beyond = m.beyond
	_, err := meter.RegisterCallback(func(ctx context.Context, observer metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, infoTimeout)
		defer cancel()
		b.observeStreams(ctx, observer, m)
		return nil
	}, m.used, m.limit, m.events, m.oldest)
	if err != nil {
		return fmt.Errorf("registering gauges: %w", err)
	}
	return nil
}

// observeStreams observes the streams. It leaves out a stream that cannot be read, as happens when the program ends: the connection is closed before
// the last collection.
func (b *Bus) observeStreams(ctx context.Context, observer metric.Observer, m *metrics) {
	for name, stream := range b.streams() {
		info, err := (*stream).Info(ctx)
		if err != nil {
			continue
		}
		label := metric.WithAttributes(attribute.String("stream", name))
		observer.ObserveInt64(m.used, int64(info.State.Bytes), label)
		observer.ObserveInt64(m.events, int64(info.State.Msgs), label)
		if info.Config.MaxBytes > 0 {
			observer.ObserveInt64(m.limit, info.Config.MaxBytes, label)
		}
		if info.State.Msgs > 0 {
			observer.ObserveInt64(m.oldest, info.State.FirstTime.Unix(), label)
		}
	}
}
