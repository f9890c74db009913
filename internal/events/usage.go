package events

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Usage is how much of a stream is used.
type Usage struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// Limit is the maximum of Bytes. Zero means that only the volume limits the stream.
	Limit uint64 `json:"limit,omitempty"`
	// Last is when the last message was stored. It is zero if there was none.
	Last time.Time `json:"last,omitzero"`
}

// Usage returns how much of the three streams is used.
func (b *Bus) Usage(ctx context.Context) ([]Usage, error) {
	var all []Usage
	for _, stream := range []jetstream.Stream{b.changes, b.history, b.deadLetters} {
		info, err := stream.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading stream %s: %w", stream.CachedInfo().Config.Name, err)
		}
		all = append(all, Usage{
			Stream: info.Config.Name, Messages: info.State.Msgs, Bytes: info.State.Bytes,
			Limit: uint64(max(info.Config.MaxBytes, 0)), Last: info.State.LastTime,
		})
	}
	return all, nil
}
