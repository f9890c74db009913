package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// stall is how long a reading waits for a message before it asks the server whether there are more.
	stall = time.Second
	// infoTimeout bounds that question. A question without an answer is repeated.
	infoTimeout = 2 * time.Second
	// lostAfter is how long there may be no message, and no answer which says that none is missing: then the consumer is lost, or what it sent.
	lostAfter = 10 * time.Second
)

// reading is one call of Reader.read.
type reading struct {
	stream jetstream.Stream
	// config is that of the next consumer, which starts after the last message.
	config jetstream.OrderedConsumerConfig
	fn     func(jetstream.Msg, *jetstream.MsgMetadata) error
	// stall and lostAfter are the constants of that name, except in tests.
	stall, lostAfter time.Duration
	// since is when the last message came, or the reading began.
	since time.Time
}

// read calls fn for each message of a stream until it has caught up.
//
// Each message carries the number of those that follow. This does not suffice: if the last ones vanish before they are sent
// (superseded, expired, deleted), no message is marked as the last. So read asks the server whenever no message comes. The iterator replaces a
// consumer when it has missed its heartbeats within one call of Next, which are too short for that. So read itself replaces a consumer that
// waits for a request; and if neither messages nor answers come, the consumer was lost with its server, and read returns an error.
func (r *Reader) read(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig,
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error,
) error {
	config.InactiveThreshold = time.Minute
	// The iterator replaces a lost consumer. Without a limit it would try for ever on a stream that was deleted.
	config.MaxResetAttempts = 4
	one := &reading{stream: stream, config: config, fn: fn, stall: r.stall, lostAfter: r.lostAfter, since: time.Now()}
	for {
		if err := one.run(ctx); !errors.Is(err, errUnasked) {
			return err
		}
	}
}

// run reads with one consumer. The error is errUnasked if another one is to continue.
func (r *reading) run(ctx context.Context) error {
	failed := func(err error) error {
		return fmt.Errorf("reading stream %s: %w", r.stream.CachedInfo().Config.Name, err)
	}
	consumer, err := r.stream.OrderedConsumer(ctx, r.config)
	if err != nil {
		return failed(err)
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, stop, err := iterate(ctx, consumer)
	if err != nil {
		return failed(err)
	}
	defer stop()
	last := &jetstream.MsgMetadata{}
	for {
		msg, err := messages.Next(jetstream.NextMaxWait(r.stall))
		switch {
		case ctx.Err() != nil:
			return failed(context.Cause(ctx))
		case errors.Is(err, nats.ErrTimeout):
			done, err := r.caughtUp(ctx, consumer, last)
			switch {
			case err != nil:
				return failed(err)
			case done:
				return nil
			}
			continue
		case err != nil:
			return failed(err)
		}
		if last, err = msg.Metadata(); err != nil {
			return failed(err)
		}
		if err := r.fn(msg, last); err != nil {
			return err
		}
		if last.NumPending == 0 {
			return nil
		}
		r.since = time.Now()
		r.config.DeliverPolicy, r.config.OptStartTime = jetstream.DeliverByStartSequencePolicy, nil
		r.config.OptStartSeq = last.Sequence.Stream + 1
	}
}

// iterate returns an iterator over the messages of a consumer, and the function that ends it. It also ends when ctx is done.
func iterate(ctx context.Context, consumer jetstream.Consumer) (jetstream.MessagesContext, func(), error) {
	messages, err := consumer.Messages()
	if err != nil {
		return nil, nil, err
	}
	forget := context.AfterFunc(ctx, messages.Stop) // While the server is unreachable, the iterator ignores ctx.
	return messages, func() {
		forget()
		messages.Stop()
	}, nil
}

// caughtUp asks the server whether it has sent everything, and reports whether all of it was received. The error is that of a stream that no
// longer exists, errUnasked, or errLost when that has taken too long; any other error is worth another question.
func (r *reading) caughtUp(ctx context.Context, consumer jetstream.Consumer, last *jetstream.MsgMetadata) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := consumer.Info(bounded)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, err
	}
	complete := false
	if err == nil {
		var received uint64
		if last.Consumer == info.Name { // and not a consumer that this one has replaced
			received = last.Sequence.Consumer
		}
		complete = info.Delivered.Consumer == received
	}
	switch {
	case complete && info.NumPending == 0:
		return true, nil
	case time.Since(r.since) > r.lostAfter:
		return false, errLost
	case complete && info.NumWaiting == 0:
		return false, errUnasked
	}
	return false, nil
}
