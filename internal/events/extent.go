package events

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Extent describes what StreamChanges holds, of all clusters and of outcomes too.
type Extent struct {
	// Created is when the stream was created. It differs once the stream was deleted and declared again.
	Created time.Time
	// FirstSeq is the sequence of the oldest event. If there are none, it is that of the next one.
	FirstSeq uint64
	// Events is the number of events, which is that of subjects.
	Events uint64
}

// Extent returns what the stream holds. It is one short request, however large the stream is.
func (b *Bus) Extent(ctx context.Context) (Extent, error) {
	info, err := b.changes.Info(ctx)
	if err != nil {
		return Extent{}, fmt.Errorf("reading stream %s: %w", StreamChanges, err)
	}
	return Extent{Created: info.Created, FirstSeq: info.State.FirstSeq, Events: info.State.Msgs}, nil
}

// HistorySpan returns the sequences of the oldest and the newest event on StreamHistory. An older one than the oldest was dropped.
func (b *Bus) HistorySpan(ctx context.Context) (first, last uint64, err error) {
	info, err := b.lookAtHistory(ctx)
	if err != nil {
		return 0, 0, err
	}
	return info.State.FirstSeq, info.State.LastSeq, nil
}

// OnReconnect calls fn each time that the connection to NATS is up again, until ctx is done or the connection is closed. It
// drops calls that come while fn runs, except for a few.
func (b *Bus) OnReconnect(ctx context.Context, fn func()) {
	connection := b.js.Conn()
	changed := connection.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer connection.RemoveStatusListener(changed)
	for !connection.IsClosed() {
		select {
		case <-ctx.Done():
			return
		case status := <-changed:
			if status == nats.CONNECTED {
				fn()
			}
		}
	}
}
