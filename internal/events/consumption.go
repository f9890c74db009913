package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"
)

// silences is after how many missing signs of life in a row a consumer reconnects: its server may have vanished, or may be cut
// off from the others.
const silences = 3

// pullExpiry is after how long the server ends a request for messages. A consumer that hears nothing gives up much earlier.
const pullExpiry = 10 * time.Second

// findTimeout bounds an attempt to find the consumer or the stream. While their servers elect a leader, none of them answers.
const findTimeout = 2 * time.Second

// guardInterval is how often the consumer is compared with what is required.
const guardInterval = time.Minute

// consumption is one call of Consume or ConsumeOutcomes.
type consumption struct {
	stream  jetstream.Stream
	config  jetstream.ConsumerConfig
	opts    ConsumeOptions
	handler func(context.Context, *Delivery)
	// parse fills in the Change or the Outcome of a delivery, or rejects it.
	parse func(*Delivery) error
	// rejections is Delivery.rejections.
	rejections *rejections
	// beside says that another consumption uses the same connection and reconnects it if necessary.
	beside     bool
	heartbeat  *heartbeat
	connection *nats.Conn
	logger     *slog.Logger
	now        func() time.Time
	retry      func() wait.Backoff
	// guardInterval is the constant of that name, except in tests.
	guardInterval time.Duration
}

// newConsumption returns a consumption of the stream. The options must have their defaults.
func (b *Bus) newConsumption(stream jetstream.Stream, opts ConsumeOptions, handler func(context.Context, *Delivery)) *consumption {
	return &consumption{
		stream: stream, config: opts.consumerConfig(), opts: opts, handler: handler, heartbeat: newHeartbeat(),
		connection: b.js.Conn(), logger: b.logger, now: b.now, retry: b.retry, guardInterval: b.guardInterval,
	}
}

// run consumes until ctx is done or the server rejects the consumer.
func (c *consumption) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	beside, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { c.heartbeat.run(beside, c.opts.AckWait/3) })
	wg.Go(func() { c.guard(beside) })
	if c.rejections != nil {
		wg.Go(func() { c.rejections.run(beside) })
	}

	// Listening starts before the first failure, so that no reconnection is missed. One from before the failure costs one early retry.
	connected := c.connection.StatusChanged(nats.CONNECTED)
	defer c.connection.RemoveStatusListener(connected)
	backoff, silent := c.retry(), 0
	for {
		began := c.now()
		started, err := c.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errConsumer):
			return err
		case started:
			backoff = c.retry()
		}
		silent = c.afterSilence(ctx, silent, c.now().Sub(began), err)
		delay := backoff.Step()
		c.logger.WarnContext(ctx, "consumer interrupted", "durable", c.opts.Durable, "retry_in", delay, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-connected:
			backoff = c.retry()
		case <-time.After(delay):
		}
	}
}

// afterSilence returns how many times in a row the server has been silent, where before is the previous count and lasted how long the consumer
// worked in between. If that is too often, it reconnects, to another server if there is one.
func (c *consumption) afterSilence(ctx context.Context, before int, lasted time.Duration, err error) int {
	if !errors.Is(err, jetstream.ErrNoHeartbeat) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
		return 0
	}
	if lasted > pullExpiry {
		before = 0 // It has heard from the server meanwhile.
	}
	if c.beside || before+1 < silences || !c.connection.IsConnected() {
		return before + 1
	}
	c.logger.WarnContext(ctx, "nats is silent, reconnecting", "durable", c.opts.Durable, "server", c.connection.ConnectedServerName())
	if err := c.connection.ForceReconnect(); err != nil {
		c.logger.WarnContext(ctx, "nats cannot be reconnected", "err", err)
	}
	return 0
}

// find returns the consumer.
func (c *consumption) find(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	return ensureConsumer(ctx, c.stream, c.config, c.logger)
}

// guard compares the consumer periodically with what is required. To its reader, a consumer that is paused or sends only headers looks like
// one that has no events.
func (c *consumption) guard(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, c.guardInterval, false, func(ctx context.Context) (bool, error) {
		if _, err := c.find(ctx); err != nil && ctx.Err() == nil && !IsSilence(err) {
			c.logger.WarnContext(ctx, "consumer cannot be compared with what is required", "durable", c.opts.Durable, "err", err)
		}
		return false, nil
	})
}

// fetch consumes until something fails. It reports whether it got as far as receiving from the consumer.
func (c *consumption) fetch(ctx context.Context) (started bool, err error) {
	consumer, err := c.find(ctx)
	if err != nil {
		return false, err
	}
	messages, err := consumer.Messages(
		jetstream.PullMaxMessages(min(c.opts.MaxAckPending, 256)),
		jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(2*time.Second),
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
		// Only a message that does not come from a consumer lacks metadata, and such a message cannot be acknowledged.
		c.logger.WarnContext(ctx, "message has no metadata", "subject", msg.Subject(), "err", err)
		return
	}
	d := &Delivery{
		Seq: meta.Sequence.Stream, Deliveries: int(meta.NumDelivered),
		subject: msg.Subject(), header: msg.Headers(), data: msg.Data(), StoredAt: meta.Timestamp,
		msg: msg, heartbeat: c.heartbeat, backoff: c.opts.Backoff, rejections: c.rejections, logger: c.logger,
	}
	c.heartbeat.add(msg)
	if len(d.data) == 0 && d.header.Get(nats.MsgSize) != "" {
		d.Done(ctx, errHeadersOnly)
		return
	}
	if err := c.parse(d); err != nil {
		if reject, ok := errors.AsType[*RejectError](err); ok {
			c.opts.OnReject(ctx, reject.Reason)
		}
		d.Done(ctx, err)
		return
	}
	c.handler(ctx, d)
}

// nakBuffered naks the messages that were fetched but not handled, so that they are redelivered now and not after AckWait.
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
