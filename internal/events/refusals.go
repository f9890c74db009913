package events

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// The server's error codes for a lack of storage, for which nats.go has no names.
const (
	errCodeAccountResources      jetstream.ErrorCode = 10002 // the account has reached its limit
	errCodeInsufficientResources jetstream.ErrorCode = 10023 // the server has reached its limit
	errCodeStorageResources      jetstream.ErrorCode = 10047 // what the stream reserves does not fit
	errCodeStoreFailed           jetstream.ErrorCode = 10077 // the stream has reached its limit
)

// isStorage reports whether a server answered that it has no storage for a message or a stream.
func isStorage(err error) bool {
	var answer *jetstream.APIError
	return errors.As(err, &answer) && slices.Contains([]jetstream.ErrorCode{
		errCodeAccountResources, errCodeInsufficientResources, errCodeStorageResources, errCodeStoreFailed,
	}, answer.ErrorCode)
}

// refusals logs when a stream begins to refuse messages for lack of storage, and when it accepts them again. It logs each once, no matter
// how many messages are published and how often. The zero value is ready for use.
type refusals struct {
	mu   sync.Mutex
	full map[string]bool
}

// note is called with the result of each message for a stream.
func (r *refusals) note(ctx context.Context, logger *slog.Logger, stream string, err error) {
	full := isStorage(err)
	if !full && err != nil {
		return // says nothing about storage
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full[stream] == full {
		return
	}
	if r.full == nil {
		r.full = make(map[string]bool)
	}
	r.full[stream] = full
	if full {
		logger.ErrorContext(ctx, "nats has no storage left, publishing waits: enlarge its volume or raise its limit", "stream", stream, "err", err)
		return
	}
	logger.InfoContext(ctx, "nats has storage again, publishing resumes", "stream", stream)
}
