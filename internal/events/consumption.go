package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// consumption is one call of Consume or ConsumeOutcomes.
type consumption struct {
	stream  jetstream.Stream
	config  jetstream.ConsumerConfig
	opts    ConsumeOptions
	handler func(context.Context, *Delivery)
	// parse fills in the Change or the Outcome of a delivery, or rejects it.
	parse func(*Delivery) error
	// deadLetter is Delivery.deadLetter.
	deadLetter func(context.Context, *Delivery, *RejectError) error
	heartbeat  *heartbeat
	logger     *slog.Logger
	now        func() time.Time
}

// run consumes until ctx is done or the server rejects the consumer.
func (c *consumption) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	beating, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { c.heartbeat.run(beating, c.opts.AckWait/3) })

	backoff := newBackoff()
	for {
		started, err := c.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errConsumer):
			return err
		case started:
			backoff = newBackoff()
		}
		delay := backoff.Step()
		c.logger.WarnContext(ctx, "consumer interrupted", "durable", c.opts.Durable, "retry_in", delay, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// fetch consumes until something fails. It reports whether the consumer was there before that.
func (c *consumption) fetch(ctx context.Context) (started bool, err error) {
	consumer, err := ensureConsumer(ctx, c.stream, c.config)
	if err != nil {
		return false, err
	}
	messages, err := consumer.Messages(
		jetstream.PullMaxMessages(min(c.opts.MaxAckPending, 256)),
		jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(2*time.Second),
		jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return false, fmt.Errorf("consuming: %w", err)
	}
	defer nakBuffered(ctx, messages)
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return true, fmt.Errorf("consuming: %w", err)
		}
		c.receive(ctx, msg)
	}
}

// receive passes one message to the handler, or rejects it.
func (c *consumption) receive(ctx context.Context, msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		// Only a message of no consumer lacks metadata, and that one cannot be acknowledged.
		c.logger.WarnContext(ctx, "message has no metadata", "subject", msg.Subject(), "err", err)
		return
	}
	d := &Delivery{
		Seq: meta.Sequence.Stream, Deliveries: int(meta.NumDelivered), Received: c.now(),
		subject: msg.Subject(), header: msg.Headers(), data: msg.Data(), storedAt: meta.Timestamp,
		msg: msg, heartbeat: c.heartbeat, backoff: c.opts.Backoff, deadLetter: c.deadLetter, logger: c.logger,
	}
	c.heartbeat.add(msg)
	if err := c.parse(d); err != nil {
		if reject, ok := errors.AsType[*RejectError](err); ok {
			c.opts.OnReject(ctx, reject.Reason)
		}
		d.Done(ctx, err)
		return
	}
	c.handler(ctx, d)
}

// nakBuffered naks what was fetched but not handled, so that the next consumer gets it now and not after AckWait.
func nakBuffered(ctx context.Context, messages jetstream.MessagesContext) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	defer messages.Stop()
	messages.Drain()
	for {
		msg, err := messages.Next(jetstream.NextContext(bounded))
		if err != nil {
			return
		}
		_ = msg.Nak()
	}
}
