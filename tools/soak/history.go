package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
)

const (
	// reading bounds one reading of the streams.
	reading = 30 * time.Second
	// unpublished is the longest time from a roll to the publication of its outcome: until another actuator leads and has found the
	// roll.
	unpublished = time.Minute
)

// history collects the content of HISTORY. It is read just before a fault discards it.
type history struct {
	url  string
	told told
	// read is the start of the last complete reading.
	read time.Time
	lost []window
}

func newHistory(url string) *history { return &history{url: url, told: newTold(), read: time.Now()} }

// collect reads HISTORY.
func (h *history) collect(ctx context.Context) error {
	began := time.Now()
	err := h.with(ctx, func(ctx context.Context, b *bus.Bus, _ jetstream.JetStream) error {
		query := bus.HistoryQuery{Clusters: []string{cluster}, Kind: events.KindRollout, Since: h.read.Add(-2 * unpublished)}
		return b.History(ctx, query, func(stored events.Stored) error {
			outcome, err := stored.Outcome()
			if err == nil {
				h.told.add(outcome)
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("reading HISTORY: %w", err)
	}
	h.read = began
	return nil
}

// forget records that outcomes published from the last reading until now may be lost.
func (h *history) forget() {
	h.lost = append(h.lost, window{from: h.read.Add(-unpublished), to: time.Now()})
}

// purge empties the streams, as "nats stream purge" does.
func (h *history) purge(ctx context.Context) error {
	return h.with(ctx, func(ctx context.Context, _ *bus.Bus, js jetstream.JetStream) error {
		for _, name := range []string{events.StreamHistory, events.StreamChanges} {
			stream, err := js.Stream(ctx, name)
			if err == nil {
				err = stream.Purge(ctx)
			}
			if err != nil {
				return fmt.Errorf("emptying %s: %w", name, err)
			}
		}
		return nil
	})
}

// with connects to NATS for one call of look.
func (h *history) with(ctx context.Context, look func(context.Context, *bus.Bus, jetstream.JetStream) error) error {
	ctx, cancel := context.WithTimeout(ctx, reading)
	defer cancel()
	connection, err := bus.Connect(ctx, bus.ConnectOptions{URL: h.url, Cluster: cluster, Name: "soak"})
	if err != nil {
		return err
	}
	defer connection.Close()
	b, err := bus.Open(ctx, connection, cluster, nil)
	if err != nil {
		return err
	}
	js, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	return look(ctx, b, js)
}
