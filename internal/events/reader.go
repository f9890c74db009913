package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stall is how long a Reader waits for a message before it asks whether there are any left.
const stall = time.Second

// Reader reads what the streams hold. It is safe for use by several goroutines. It does not own the connection.
type Reader struct {
	// changes is the stream of which the last event on a subject is its state, and history the one that has the earlier ones.
	changes, history jetstream.Stream
	// historyRoot is what the subjects of history begin with.
	historyRoot string
	// stall is the constant of that name, but in tests.
	stall time.Duration
}

// OpenFleet gives a reader of one stream that has the events of many clusters, on the subjects that they have on
// StreamChanges. Such a stream sources StreamChanges of each of them; its operator gives it a name. It is read alone, so
// nothing about it is verified but that it is there.
func OpenFleet(ctx context.Context, nc *nats.Conn, stream string) (*Reader, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	fleet, err := js.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("%w: %s does not exist", ErrStream, stream)
	case err != nil:
		return nil, fmt.Errorf("reading stream %s: %w", stream, err)
	}
	return &Reader{changes: fleet, history: fleet, historyRoot: changesRoot, stall: stall}, nil
}

// subject is the subject on StreamChanges of an event that history has.
func (r *Reader) subject(history string) string {
	return changesRoot + strings.TrimPrefix(history, r.historyRoot)
}

// Last gives the last event on a subject, or ErrNotFound. With several replicas it may be a moment old.
func (r *Reader) Last(ctx context.Context, subject string) (Stored, error) {
	raw, err := r.changes.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return Stored{}, fmt.Errorf("reading %s: %w", subject, ErrNotFound)
	case err != nil:
		return Stored{}, fmt.Errorf("reading %s: %w", subject, err)
	}
	return newStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data), nil
}
