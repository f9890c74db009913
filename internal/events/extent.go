package events

import (
	"context"
	"fmt"
	"time"
)

// Extent describes what StreamChanges holds, including outcomes and the events of all clusters.
type Extent struct {
	// Created is when the stream was created. It changes when the stream is deleted and declared again.
	Created time.Time
	// FirstSeq is the sequence of the oldest event. If there are no events, it is the sequence of the next one.
	FirstSeq uint64
	// LastSeq is the sequence of the newest event that there was.
	LastSeq uint64
	// Events is the number of events, which equals the number of subjects.
	Events uint64
}

// Extent returns what the stream holds. It is one short request, however large the stream is.
func (b *Bus) Extent(ctx context.Context) (Extent, error) {
	info, err := b.changes.Info(ctx)
	if err != nil {
		return Extent{}, fmt.Errorf("reading stream %s: %w", StreamChanges, err)
	}
	return Extent{Created: info.Created, FirstSeq: info.State.FirstSeq, LastSeq: info.State.LastSeq, Events: info.State.Msgs}, nil
}

// HistorySpan returns the sequences of the oldest and the newest event on StreamHistory. Events with lower sequences have been dropped.
func (b *Bus) HistorySpan(ctx context.Context) (first, last uint64, err error) {
	info, err := b.lookAtHistory(ctx)
	if err != nil {
		return 0, 0, err
	}
	return info.State.FirstSeq, info.State.LastSeq, nil
}
