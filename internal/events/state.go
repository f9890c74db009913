package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// infoTimeout is how long the server may take to say how a consumer is. A question that is lost is asked again.
const infoTimeout = 5 * time.Second

// State hands the last event of every subject that matches a filter to fn, in the order of the stream. It
// returns when every subject that was there when it was called, and is there still, was handed over; one whose event is
// superseded meanwhile may be twice. A message that is not an event is handed over with Stored.Err set. An error of fn ends
// it and is returned as it is.
func (r *Reader) State(ctx context.Context, filterSubjects []string, fn func(Stored) error) error {
	left, err := r.subjects(ctx, filterSubjects)
	if err != nil || len(left) == 0 {
		return err
	}
	err = r.read(ctx, r.changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: filterSubjects,
		DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		delete(left, msg.Subject())
		return fn(newStored(msg.Subject(), meta.Sequence.Stream, meta.Timestamp, msg.Headers(), msg.Data()))
	})
	if err != nil {
		return err
	}
	// The server counts an event that supersedes a moment after it has dropped the one that is superseded. The end can fall
	// between the two, so what was not seen is asked for.
	for subject := range left {
		stored, err := r.Last(ctx, subject)
		if errors.Is(err, ErrNotFound) {
			continue // gone meanwhile
		}
		if err != nil {
			return err
		}
		if err := fn(stored); err != nil {
			return err
		}
	}
	return nil
}

// subjects lists the subjects of the stream that match a filter.
func (r *Reader) subjects(ctx context.Context, filters []string) (map[string]struct{}, error) {
	subjects := make(map[string]struct{})
	for _, filter := range filters {
		info, err := r.changes.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err != nil {
			return nil, fmt.Errorf("reading the subjects of stream %s: %w", r.changes.CachedInfo().Config.Name, err)
		}
		for subject := range info.State.Subjects {
			subjects[subject] = struct{}{}
		}
	}
	return subjects, nil
}

// read hands the messages of a stream to fn until it has caught up.
//
// The server says with each message how many follow. That is not enough: where the last ones vanish while they are awaited
// (superseded, expired, deleted), no message says that it was the last. So the server is asked whenever it is silent.
func (r *Reader) read(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig,
	fn func(jetstream.Msg, *jetstream.MsgMetadata) error,
) error {
	name := stream.CachedInfo().Config.Name
	config.InactiveThreshold = time.Minute
	// The iterator replaces a consumer that is lost. Without a limit it would do so for ever where the stream is lost too.
	config.MaxResetAttempts = 4
	consumer, err := stream.OrderedConsumer(ctx, config)
	if err != nil {
		return fmt.Errorf("reading stream %s: %w", name, err)
	}
	if consumer.CachedInfo().NumPending == 0 {
		return nil
	}
	messages, err := consumer.Messages()
	if err != nil {
		return fmt.Errorf("reading stream %s: %w", name, err)
	}
	// While the server is away the iterator waits for it and not for ctx.
	stop := context.AfterFunc(ctx, messages.Stop)
	defer func() {
		stop()
		messages.Stop()
	}()
	last := &jetstream.MsgMetadata{}
	for {
		msg, err := messages.Next(jetstream.NextMaxWait(r.stall))
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("reading stream %s: %w", name, context.Cause(ctx))
		case errors.Is(err, nats.ErrTimeout):
			bounded, cancel := context.WithTimeout(ctx, infoTimeout)
			info, err := consumer.Info(bounded)
			cancel()
			switch {
			case err == nil && caughtUp(info, last):
				return nil
			case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
				return fmt.Errorf("reading stream %s: %w", name, err)
			}
			continue
		case err != nil:
			return fmt.Errorf("reading stream %s: %w", name, err)
		}
		if last, err = msg.Metadata(); err != nil {
			return fmt.Errorf("reading stream %s: %w", name, err)
		}
		if err := fn(msg, last); err != nil {
			return err
		}
		if last.NumPending == 0 {
			return nil
		}
	}
}

// caughtUp tells whether the server has nothing more to send, and nothing is on its way that was not received yet.
func caughtUp(info *jetstream.ConsumerInfo, last *jetstream.MsgMetadata) bool {
	var received uint64
	if last.Consumer == info.Name { // and not one that was replaced by it
		received = last.Sequence.Consumer
	}
	return info.NumPending == 0 && info.Delivered.Consumer == received
}
