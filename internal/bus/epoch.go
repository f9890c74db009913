package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// Taker receives the events that a Follower reads. An event may come several times, and an older event after a newer one, as LastChanges.Put expects.
type Taker interface {
	// Put is called for each event, from several goroutines. An event that could not be read has no verb.
	Put(at events.Address, c *events.LastChange)
	// Complete is called after everything that was on the stream when a reading began, up to the sequence last, has been put.
	Complete(last uint64)
}

const (
	// consumerHeartbeat is the interval of the server's heartbeats without events. After two missing ones, the consumer counts as lost.
	consumerHeartbeat = 15 * time.Second
	completePoll      = 100 * time.Millisecond // how long an epoch waits for another message before it asks whether there is one
	// maxUnasked is how many consecutive consumers of a filter may get no request: one may be lost, but more mean that the permission is missing.
	maxUnasked   = 4
	tombstoneDue = events.TombstoneTTL - time.Hour // the age at which the stream may have dropped a deletion, despite different clocks
)

// epoch is one reading of the last event of every source, and of the events that follow.
//
// Each filter has its own consumer, for the reason described at Reader.State. It begins with the last event of each subject and continues with new
// events. A second consumer for the new ones could be on a server that is ahead of the first one, and events in between would be missed.
type epoch struct {
	bus    *Bus
	taker  Taker
	number uint32
	// created is when the stream was created. first is the sequence of its last message when the epoch began, and last is the current one.
	created     time.Time
	first, last uint64
	settled     time.Time // when no server of the stream lacks any event from the beginning of the epoch
	// complete has a value for each filter for which everything up to first has been put, and failed one for each that is not followed any more.
	complete chan struct{}
	failed   chan error
	stop     context.CancelFunc // ends the epoch
	parts    sync.WaitGroup     // the goroutines to wait for

	mu sync.Mutex
	// newest is the put message with the highest sequence.
	newest struct {
		subject string
		seq     uint64
		at      time.Time
		// expires says that it is a deletion, which the stream drops.
		expires bool
	}
}

func (e *epoch) end() {
	e.stop()
	e.parts.Wait()
}

// follow reads the events of a filter until ctx is done or reading fails.
func (e *epoch) follow(ctx context.Context, filter string) {
	err := e.consume(ctx, filter)
	for unasked := 1; errors.Is(err, errUnasked) && unasked < maxUnasked; unasked++ {
		err = e.consume(ctx, filter)
	}
	if ctx.Err() == nil {
		e.failed <- fmt.Errorf("following %s: %w", filter, err)
	}
}

func (e *epoch) consumer(ctx context.Context, filter string) (jetstream.Consumer, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	consumer, err := e.bus.changes.CreateConsumer(bounded, jetstream.ConsumerConfig{
		FilterSubject: filter, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	return consumer, withConsumers(ctx, e.bus.changes, err)
}

// consume reads with one consumer. The error wraps errUnasked if another consumer must begin again.
func (e *epoch) consume(ctx context.Context, filter string) error {
	consumer, err := e.consumer(ctx, filter)
	if err != nil {
		return err
	}
	messages, stop, err := iterate(ctx, consumer, jetstream.PullHeartbeat(consumerHeartbeat))
	if err != nil {
		return err
	}
	defer stop()
	last, since, complete := &jetstream.MsgMetadata{}, time.Now(), false
	for {
		var wait []jetstream.NextOpt
		if !complete {
			wait = append(wait, jetstream.NextMaxWait(completePoll))
		}
		msg, err := messages.Next(wait...)
		var isPut bool
		switch {
		case errors.Is(err, nats.ErrTimeout):
			if isPut, err = e.bus.caughtUp(ctx, consumer, last, since); err != nil {
				return err
			}
			// The position of a consumer with nothing pending proves nothing: its server may lack the newest events for a while.
			isPut = isPut && !time.Now().Before(e.settled)
		case err != nil:
			return err
		default:
			meta, err := msg.Metadata()
			if err != nil {
				return err
			}
			if meta.Sequence.Consumer != last.Sequence.Consumer+1 {
				return errLost
			}
			e.put(ctx, e.bus.stored(msg, meta))
			isPut, last, since = meta.Sequence.Stream >= e.first, meta, time.Now()
		}
		if !complete && isPut {
			complete = true
			e.complete <- struct{}{}
		}
	}
}

func (e *epoch) put(ctx context.Context, stored events.Stored) {
	c, err := stored.LastChange()
	e.mu.Lock()
	if stored.Seq > e.newest.seq {
		e.newest.subject, e.newest.seq, e.newest.at = stored.Subject, stored.Seq, stored.Time
		e.newest.expires = c.Verb() == events.VerbDeleted
	}
	e.mu.Unlock()
	at, illegal := events.ParseSubject(stored.Subject)
	if illegal != nil {
		e.bus.logger.WarnContext(ctx, "ignoring an event on the stream", "err", illegal)
		return
	}
	if err != nil {
		e.bus.logger.WarnContext(ctx, "cannot read an event on the stream", "subject", stored.Subject, "err", err)
		c = events.UnreadableChange(stored.Seq, stored.Time)
	}
	c.Epoch = e.number
	e.taker.Put(at, &c)
}

// check returns an error that wraps errOtherStream if the stream lacks events that were put, or has more. Any other error means that this is unknown.
func (e *epoch) check(ctx context.Context) error {
	e.mu.Lock()
	newest := e.newest
	e.mu.Unlock()
	info, err := infoOf(ctx, e.bus.changes)
	switch {
	case err != nil:
		return err
	case !info.Created.Equal(e.created), info.State.LastSeq < max(e.last, newest.seq):
		return errOtherStream
	}
	e.last = info.State.LastSeq
	if newest.seq == 0 {
		return nil
	}
	raw, err := e.bus.last(ctx, newest.subject)
	switch {
	case errors.Is(err, events.ErrNotFound) && newest.expires && time.Since(newest.at) >= tombstoneDue:
		return nil
	case errors.Is(err, events.ErrNotFound):
		return errOtherStream
	case err != nil:
		return err
	case raw.Sequence != newest.seq, !raw.Time.Equal(newest.at):
		return errOtherStream
	}
	return nil
}
