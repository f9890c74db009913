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

const (
	// stall is how long a Reader waits for a message before it asks the server whether there are more.
	stall = time.Second
	// infoTimeout bounds that question. A question without an answer is repeated.
	infoTimeout = 2 * time.Second
	// lostAfter is how long there may be no message, and no answer which says that none is missing: then the consumer is lost, or what it sent.
	lostAfter = 10 * time.Second
)

// Reader reads events from streams. It is safe for concurrent use. It does not close the connection.
type Reader struct {
	// changes is the stream with the state: the last event on each subject. history is the one with earlier events.
	changes, history jetstream.Stream
	// historyRoot is the prefix of the subjects of history.
	historyRoot string
	// js reads the streams before history. Nil: there are none.
	js jetstream.JetStream
	// stall and lostAfter are the constants of that name, except in tests.
	stall, lostAfter time.Duration
}

// OpenFleet returns a reader of a stream that sources StreamChanges of many clusters, with unchanged subjects. The stream's
// name is the operator's choice. OpenFleet verifies that it exists, and nothing else.
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

// Answers returns nil if the servers of StreamChanges answer soon. While they elect a leader they do not, and a longer question would wait in vain
// also after that. IsSilence reports whether the error is that.
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
	raw, err := r.changes.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return Stored{}, fmt.Errorf("reading %s: %w", subject, ErrNotFound)
	case err != nil:
		return Stored{}, fmt.Errorf("reading %s: %w", subject, err)
	}
	return newStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data), nil
}

// subject returns the subject on StreamChanges of an event of the history.
func (r *Reader) subject(history string) string {
	return changesRoot + strings.TrimPrefix(history, r.historyRoot)
}

// read calls fn for each message of a stream until it has caught up.
//
// Each message carries the number of those that follow. This does not suffice: if the last ones vanish before they are sent
// (superseded, expired, deleted), no message is marked as the last. So read asks the server whenever no message comes. The iterator replaces a
// consumer when it has missed its heartbeats within one call of Next, which are too short for that: if neither messages nor answers come, the
// consumer was lost with its server, and read returns an error.
func (r *Reader) read(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig,
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error,
) error {
	failed := func(err error) error {
		return fmt.Errorf("reading stream %s: %w", stream.CachedInfo().Config.Name, err)
	}
	config.InactiveThreshold = time.Minute
	// The iterator replaces a lost consumer. Without a limit it would try for ever on a stream that was deleted.
	config.MaxResetAttempts = 4
	consumer, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return failed(err)
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return failed(err)
	}
	// While the server is unreachable, the iterator ignores ctx.
	stop := context.AfterFunc(ctx, messages.Stop)
	defer func() {
		stop()
		messages.Stop()
	}()
	last := &jetstream.MsgMetadata{}
	since := time.Now()
	for {
		msg, err := messages.Next(jetstream.NextMaxWait(r.stall))
		switch {
		case ctx.Err() != nil:
			return failed(context.Cause(ctx))
		case errors.Is(err, nats.ErrTimeout):
			done, err := caughtUp(ctx, consumer, last)
			switch {
			case err != nil:
				return failed(err)
			case done:
				return nil
			case time.Since(since) > r.lostAfter:
				return failed(errLost)
			}
			continue
		case err != nil:
			return failed(err)
		}
		if last, err = msg.Metadata(); err != nil {
			return failed(err)
		}
		if err := fn(msg, last); err != nil {
			return err
		}
		if last.NumPending == 0 {
			return nil
		}
		since = time.Now()
	}
}

// caughtUp asks the server whether it has sent everything, and reports whether all of it was received. The error is that of a stream that no
// longer exists; any other error is worth another question.
func caughtUp(ctx context.Context, consumer jetstream.Consumer, last *jetstream.MsgMetadata) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := consumer.Info(bounded)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, err
	case err != nil:
		return false, nil // the question is repeated
	}
	var received uint64
	if last.Consumer == info.Name { // and not a consumer that this one has replaced
		received = last.Sequence.Consumer
	}
	return info.NumPending == 0 && info.Delivered.Consumer == received, nil
}
