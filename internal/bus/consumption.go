package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	silences      = 3                // consecutive missing heartbeats after which a consumer reconnects, to another server if there is one
	pullExpiry    = 10 * time.Second // when the server ends a request for messages; a consumer without heartbeats gives up much earlier
	guardInterval = time.Minute      // how often the consumer is compared with the required configuration
)

// consumption is one call of Consume or ConsumeOutcomes.
type consumption struct {
	bus        *Bus
	stream     jetstream.Stream
	opts       ConsumeOptions
	name       string // of the consumer on the server
	ofOutcomes bool   // set for a call of ConsumeOutcomes
	heartbeat  *heartbeat
	buries     atomic.Int64 // earliest time of the next dead letter, in nanoseconds since 1970: later after a failure
}

func (b *Bus) newConsumption(stream jetstream.Stream, opts ConsumeOptions) (*consumption, error) {
	opts, err := opts.withDefaults()
	return &consumption{
		bus: b, stream: stream, opts: opts, name: b.secrets.consumerName(opts.Durable),
		heartbeat: &heartbeat{inFlight: make(map[jetstream.Msg]struct{})},
	}, err
}

// newConsumerBackoff returns the delays between the attempts of a consumer: half a second, doubled up to 4 seconds. A program has few consumers, and
// nothing is notified or projected until they have found the stream again.
func newConsumerBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4, Cap: 4 * time.Second}
}

func (c *consumption) run(ctx context.Context, handler func(context.Context, *Delivery)) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	beside, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { c.heartbeat.run(beside, c.opts.AckWait/3) })
	wg.Go(func() { c.guard(beside) })
	delays, silent := newConsumerBackoff(), 0
	for {
		began := c.bus.now()
		started, err := c.fetch(ctx, handler)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errConsumer):
			return err
		case started:
			delays = newConsumerBackoff()
		}
		silent = c.afterSilence(ctx, silent, c.bus.now().Sub(began), err)
		delay := delays.Step()
		c.bus.logger.WarnContext(ctx, "consumer interrupted", "durable", c.opts.Durable, "retry_in", delay, "err", err)
		if !kube.Sleep(ctx, delay) {
			return nil
		}
	}
}

// afterSilence returns the number of consecutive silences of the server. Before is the previous count, and lasted is how long the consumer worked in
// between. After too many, it reconnects, unless the consumer is for outcomes, because other readers of the connection do.
func (c *consumption) afterSilence(ctx context.Context, before int, lasted time.Duration, err error) int {
	if !errors.Is(err, jetstream.ErrNoHeartbeat) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
		return 0
	}
	if lasted > pullExpiry {
		before = 0 // It has received something meanwhile.
	}
	connection := c.bus.js.Conn()
	if c.ofOutcomes || before+1 < silences || !connection.IsConnected() {
		return before + 1
	}
	c.bus.logger.WarnContext(ctx, "nats is silent, reconnecting", "durable", c.opts.Durable, "server", connection.ConnectedServerName())
	if err := connection.ForceReconnect(); err != nil {
		c.bus.logger.WarnContext(ctx, "cannot reconnect to nats", "err", err)
	}
	return 0
}

func (c *consumption) find(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	return ensureConsumer(ctx, c.stream, c.opts.Durable, c.opts.consumerConfig(c.name), c.bus.logger)
}

// guard compares the consumer with the required configuration: a paused consumer, or one that sends only headers, looks as if it had no events.
func (c *consumption) guard(ctx context.Context) {
	for kube.Sleep(ctx, c.bus.guardInterval) {
		if _, err := c.find(ctx); err != nil && ctx.Err() == nil && !IsSilence(err) {
			c.bus.logger.WarnContext(ctx, "cannot compare a consumer with its required configuration", "durable", c.opts.Durable, "err", err)
		}
	}
}

// fetch consumes until something fails. It reports whether it got as far as receiving from the consumer.
func (c *consumption) fetch(ctx context.Context, handler func(context.Context, *Delivery)) (started bool, err error) {
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
		if d := c.receive(ctx, msg); d != nil {
			handler(ctx, d)
		}
	}
}

// receive returns the delivery of a message, or nil if the message is rejected.
func (c *consumption) receive(ctx context.Context, msg jetstream.Msg) *Delivery {
	meta, err := msg.Metadata()
	if err != nil {
		// Only a message that does not come from a consumer lacks metadata, and such a message cannot be acknowledged.
		c.bus.logger.WarnContext(ctx, "message has no metadata", "subject", msg.Subject(), "err", err)
		return nil
	}
	d := &Delivery{
		Seq: meta.Sequence.Stream, Deliveries: int(meta.NumDelivered), StoredAt: meta.Timestamp,
		subject: msg.Subject(), header: msg.Headers(), data: msg.Data(), msg: msg, consumption: c,
	}
	c.heartbeat.add(msg)
	if len(d.data) == 0 && d.header.Get(nats.MsgSize) != "" {
		d.Done(ctx, errHeadersOnly)
		return nil
	}
	if err := c.decode(d); err != nil {
		if reject, ok := errors.AsType[*events.RejectError](err); ok {
			c.opts.OnReject(ctx, reject.Reason)
		}
		d.Done(ctx, err)
		return nil
	}
	return d
}

// decode fills in the Change or the Outcome of a delivery. It rejects events of other clusters.
func (c *consumption) decode(d *Delivery) error {
	subject := c.bus.subject(d.subject)
	address, err := events.ParseSubject(subject)
	switch {
	case err != nil:
		return err
	case address.Cluster != c.bus.cluster:
		return events.Rejectf(events.ReasonForeignCluster, "the event is of cluster %q, want %q", address.Cluster, c.bus.cluster)
	}
	stored := events.NewStored(subject, d.Seq, d.StoredAt, d.header, d.data)
	if c.ofOutcomes {
		d.Outcome, err = stored.Outcome()
	} else {
		d.Change, err = stored.Change()
	}
	return err
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
