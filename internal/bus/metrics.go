package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/telemetry"
)

// metrics contains the metrics of streams. The label stream has three values.
type metrics struct {
	used, limit, events, oldest metric.Int64ObservableGauge
	beyond                      metric.Int64Counter
}

func (m *metrics) instruments() []telemetry.Instrument {
	return []telemetry.Instrument{
		telemetry.Gauge(&m.used, "keyturn.stream.used", "By",
			"Size of a stream. Absent while NATS is unreachable, like the following ones.", "stream"),
		telemetry.Gauge(&m.limit, "keyturn.stream.limit", "By",
			"Size at which a stream drops its oldest events, and CHANGES refuses new ones. Absent for one without a limit.", "stream"),
		telemetry.Gauge(&m.events, "keyturn.stream.events", "{event}",
			"Events of a stream. CHANGES has one for each source, for each that was deleted in the last 24 hours, and for each workload "+
				"that was rolled in the last 30 days.", "stream"),
		telemetry.Gauge(&m.oldest, "keyturn.stream.oldest", "s",
			"Time at which the oldest event of a stream was stored, in seconds since 1970. Absent for an empty one.", "stream"),
		telemetry.Counter(&m.beyond, "keyturn.history.beyond.share", "{event}",
			"Events beyond the share of their namespace in HISTORY, which keeps them for an hour, or not at all (none). "+
				"The log names the namespace.", "kept"),
	}
}

// Instruments returns the definitions of this package's metrics, for the reference.
func Instruments() []telemetry.Instrument { return new(metrics).instruments() }

// Observe measures the streams at each collection, for as long as the program runs. Call it before the bus publishes.
func (b *Bus) Observe(meter metric.Meter) error {
	m := &metrics{}
	if err := telemetry.MakeInstruments(meter, m.instruments()); err != nil {
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

// observeStreams observes the streams, except those that cannot be read: the connection is closed before the last collection.
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

// Extent describes the content of StreamChanges, including outcomes and the events of all clusters.
type Extent struct {
	// Created is when the stream was created. It changes when the stream is deleted and declared again.
	Created time.Time
	LastSeq uint64 // the sequence of the newest event so far
	Events  uint64 // the number of events, which equals the number of subjects
}

// Extent returns the extent of the stream, by one short request, however large the stream is.
func (b *Bus) Extent(ctx context.Context) (Extent, error) {
	info, err := infoOf(ctx, b.changes)
	if err != nil {
		return Extent{}, err
	}
	return Extent{Created: info.Created, LastSeq: info.State.LastSeq, Events: info.State.Msgs}, nil
}

// HistorySpan returns the sequences of the oldest and the newest event on StreamHistory. Events with lower sequences have been dropped.
func (b *Bus) HistorySpan(ctx context.Context) (first, last uint64, err error) {
	info, err := infoOf(ctx, b.history)
	if err != nil {
		return 0, 0, err
	}
	return info.State.FirstSeq, info.State.LastSeq, nil
}

// Usage is the usage of a stream.
type Usage struct {
	Stream   string    `json:"stream"`
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	Limit    uint64    `json:"limit,omitempty"` // the maximum of Bytes; zero means that only the volume limits the stream
	Last     time.Time `json:"last,omitzero"`   // when the last message was stored; zero if there was none
}

// Usage returns the usage of the three streams.
func (b *Bus) Usage(ctx context.Context) ([]Usage, error) {
	var all []Usage
	for _, stream := range []jetstream.Stream{b.changes, b.history, b.deadLetters} {
		info, err := infoOf(ctx, stream)
		if err != nil {
			return nil, err
		}
		all = append(all, Usage{
			Stream: info.Config.Name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
			Limit: uint64(max(info.Config.MaxBytes, 0)), Last: info.State.LastTime,
		})
	}
	return all, nil
}
