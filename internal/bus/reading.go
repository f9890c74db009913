package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	stall = time.Second // how long a reading waits for a message before it asks the server whether there are more
	// infoTimeout bounds that request. A request without an answer is repeated.
	infoTimeout = 2 * time.Second
	// requestTimeout bounds a request that begins a reading, or reads one event, so that the caller has time to repeat one that the servers have
	// lost, as they do during the election of a leader. It is twice the default of nats.go.
	requestTimeout = 10 * time.Second
	// lostAfter is how long to wait for a message, or a response that none is missing, before the consumer or its messages count as lost.
	lostAfter = 10 * time.Second
)

// visit is called for each message of a reading.
type visit = func(jetstream.Msg, *jetstream.MsgMetadata) error

// reading is one call of Reader.read or Reader.follow.
type reading struct {
	reader  *Reader
	stream  jetstream.Stream
	config  jetstream.OrderedConsumerConfig // the configuration of the next consumer, which starts after the last message
	follows bool                            // set for a reading that continues with new messages
	since   time.Time                       // the time of the last message, or of the beginning
}

// read calls fn for each message of a stream until it has caught up.
//
// Each message carries the number of messages that follow. This is not enough: if the last ones vanish before they are sent
// (superseded, expired, deleted), no message is marked as the last. So read asks the server whenever no message comes. The iterator replaces a
// consumer only if heartbeats are missed within one call of Next, and these calls are too short for that. So read itself replaces a consumer
// that has no request. If neither messages nor answers come, the consumer was lost with its server, and read returns an error.
func (r *Reader) read(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig, fn visit) error {
	config.InactiveThreshold = time.Minute
	// The iterator replaces a lost consumer. Without a limit, it would try forever on a stream that was deleted.
	config.MaxResetAttempts = 4
	one := &reading{reader: r, stream: stream, config: config, since: time.Now()}
	for {
		if err := one.run(ctx, fn); !errors.Is(err, errUnasked) {
			return err
		}
	}
}

// follow is read, except that it continues with new messages until ctx is done or reading fails for good.
func (r *Reader) follow(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig, fn visit) error {
	return (&reading{reader: r, stream: stream, config: config, follows: true}).run(ctx, fn)
}

// run reads with one consumer. The error wraps errUnasked if another consumer must continue.
func (r *reading) run(ctx context.Context, fn visit) error {
	failed := func(err error) error {
		return fmt.Errorf("reading stream %s: %w", r.stream.CachedInfo().Config.Name, err)
	}
	consumer, err := r.consumer(ctx)
	if err != nil {
		return failed(err)
	}
	if consumer.CachedInfo().NumPending == 0 && !r.follows {
		return nil
	}
	messages, stop, err := iterate(ctx, consumer)
	if err != nil {
		return failed(err)
	}
	defer stop()
	var bounded []jetstream.NextOpt
	if !r.follows {
		bounded = append(bounded, jetstream.NextMaxWait(r.reader.stall))
	}
	last := &jetstream.MsgMetadata{}
	for {
		msg, err := messages.Next(bounded...)
		switch {
		case ctx.Err() != nil:
			return failed(context.Cause(ctx))
		case errors.Is(err, nats.ErrTimeout) && !r.follows:
			isDone, err := r.reader.caughtUp(ctx, consumer, last, r.since)
			switch {
			case err != nil:
				return failed(err)
			case isDone:
				return nil
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
		if last.NumPending == 0 && !r.follows {
			return nil
		}
		r.since = time.Now()
		r.config.DeliverPolicy, r.config.OptStartTime = jetstream.DeliverByStartSequencePolicy, nil
		r.config.OptStartSeq = last.Sequence.Stream + 1
	}
}

func (r *reading) consumer(ctx context.Context) (jetstream.Consumer, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	consumer, err := r.stream.OrderedConsumer(bounded, r.config)
	return consumer, withConsumers(ctx, r.stream, err)
}

// iterate returns an iterator over the messages of a consumer, and the function that ends it. It also ends when ctx is done.
func iterate(ctx context.Context, consumer jetstream.Consumer, opts ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, func(), error) {
	messages, err := consumer.Messages(opts...)
	if err != nil {
		return nil, nil, err
	}
	forget := context.AfterFunc(ctx, messages.Stop) // While the server is unreachable, the iterator ignores ctx.
	return messages, func() {
		forget()
		messages.Stop()
	}, nil
}

// caughtUp asks the server of a consumer whether it has sent everything, and reports whether all of it was received. Since is when the last message
// arrived. The error is ErrStreamNotFound if the stream does not exist any more, errUnasked if nothing will come, or errLost after too long a wait.
// Other errors are ignored: the next call asks again.
func (r *Reader) caughtUp(ctx context.Context, consumer jetstream.Consumer, last *jetstream.MsgMetadata, since time.Time) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	info, err := consumer.Info(bounded)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, err
	}
	isReceived := false
	if err == nil {
		var received uint64
		if last.Consumer == info.Name { // otherwise, it is from a consumer that this one has replaced
			received = last.Sequence.Consumer
		}
		isReceived = info.Delivered.Consumer == received
	}
	switch wait := time.Since(since); {
	case isReceived && info.NumPending == 0:
		return true, nil
	case wait > r.lostAfter:
		return false, errLost
	case isReceived && info.NumWaiting == 0 && wait >= r.stall:
		return false, errUnasked
	}
	return false, nil
}
