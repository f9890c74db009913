package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Reader reads events from streams. It is safe for concurrent use. It does not close the connection.
type Reader struct {
	// changes is the stream with the state, which is the last event on each subject. history is the stream with earlier events.
	changes, history jetstream.Stream
	// historyRoot is the prefix of the subjects of history.
	historyRoot string
	// js reads the intakes from which history sources. It is nil if there are none.
	js jetstream.JetStream
	// stall and lostAfter are the constants of the same names, except in tests.
	stall, lostAfter time.Duration
}

// OpenFleet returns a reader of a stream that sources StreamChanges of many clusters, with unchanged subjects. The stream's
// name is the operator's choice. OpenFleet only verifies that the stream exists.
func OpenFleet(ctx context.Context, nc *nats.Conn, stream string) (*Reader, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	fleet, err := js.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("%w: %s does not exist", errStream, stream)
	case err != nil:
		return nil, fmt.Errorf("reading stream %s: %w", stream, err)
	}
	return &Reader{changes: fleet, history: fleet, historyRoot: changesRoot, js: js, stall: stall, lostAfter: lostAfter}, nil
}

// Answers returns nil if the servers of StreamChanges answer soon. They do not answer while they elect a leader, and a request from that time stays
// unanswered even afterwards, so waiting longer does not help. IsSilence reports whether an error means that no answer came.
func (r *Reader) Answers(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	if _, err := r.changes.Info(bounded); err != nil {
		return fmt.Errorf("reading stream %s: %w", r.changes.CachedInfo().Config.Name, err)
	}
	return nil
}

// Last returns the last event on a subject. The error wraps ErrNotFound if there is none. On a replicated stream the answer
// may be slightly out of date.
func (r *Reader) Last(ctx context.Context, subject string) (Stored, error) {
	raw, err := r.last(ctx, subject)
	if err != nil {
		return Stored{}, err
	}
	return newStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data), nil
}

// last returns the last message on a subject, with the errors of Last.
func (r *Reader) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	raw, err := r.changes.GetLastMsgForSubject(bounded, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, fmt.Errorf("reading %s: %w", subject, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", subject, err)
	}
	// The server appends headers that say where the message is. A publisher may have set headers of the same names, which nats.go would read first.
	raw.Subject = subject
	if sequences := raw.Header.Values(jetstream.SequenceHeader); len(sequences) > 1 {
		if raw.Sequence, err = strconv.ParseUint(sequences[len(sequences)-1], 10, 64); err != nil {
			return nil, fmt.Errorf("reading %s: the sequence: %w", subject, err)
		}
	}
	if times := raw.Header.Values(jetstream.TimeStampHeaer); len(times) > 1 {
		if raw.Time, err = time.Parse(time.RFC3339Nano, times[len(times)-1]); err != nil {
			return nil, fmt.Errorf("reading %s: the time: %w", subject, err)
		}
	}
	return raw, nil
}

// subject returns the subject on StreamChanges of an event of the history.
func (r *Reader) subject(history string) string {
	return changesRoot + strings.TrimPrefix(history, r.historyRoot)
}
