package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumeOptions say what is consumed, and how.
type ConsumeOptions struct {
	// Durable is the name of the consumer: where it stands is kept by the server under this name. Required.
	Durable string
	// FilterSubjects are the subjects consumed. Empty means SourceFilters of the bus's cluster and what StoresFrom adds for
	// Consume, and all outcomes of the cluster for ConsumeOutcomes.
	FilterSubjects []string
	// StoresFrom are other clusters whose events about secrets in stores are consumed as if they were of this one: their
	// watchers watch the stores for it. No other event of theirs is taken. Only Consume reads it.
	StoresFrom []string
	// MaxAckPending is how many events may be in flight: delivered and not finished. Zero means 1024.
	MaxAckPending int
	// AckWait is after what time without a sign of life an event is delivered again. Signs of life are sent three times as
	// often for each in-flight delivery, so this is how long the events of a program that died wait for the next
	// one. Zero means 30 seconds.
	AckWait time.Duration
	// Backoff is the delay before an event whose handling failed is delivered again, by how often it was delivered. Nil means
	// from 1 second, doubled each time, to 1 minute, with a fifth of jitter.
	Backoff func(deliveries int) time.Duration
	// OnReject is told of each event that is refused before the handler sees it, with one of the Reason constants. Nil means
	// that nobody is.
	OnReject func(ctx context.Context, reason string)
}

// Consume hands the changes of the cluster to the handler, one after the other in the order of the stream, until ctx is
// done; then it returns nil. The handler returns quickly and calls Delivery.Done later, from any goroutine. An event
// that is delivered again comes whenever its time has come.
//
// The durable consumer is created where there is none; where it differs from the options it is changed to them. Where the
// server refuses the change Consume returns an error that wraps ErrConsumer. All other troubles are logged and survived:
// NATS that restarts, or a consumer that was deleted, which is created again and starts from the state of the stream.
// An error that wraps ErrStream says that the stream does not get what StoresFrom asks for.
func (b *Bus) Consume(ctx context.Context, opts ConsumeOptions, handler func(ctx context.Context, d *Delivery)) error {
	if err := carries(b.changes.CachedInfo().Config, opts.StoresFrom); err != nil {
		return err
	}
	if len(opts.FilterSubjects) == 0 {
		opts.FilterSubjects = slices.Concat(SourceFilters(b.cluster), storeFilters(opts.StoresFrom))
	}
	return b.consume(ctx, &consumption{
		stream: b.changes, name: StreamChanges, deliver: jetstream.DeliverAllPolicy, opts: opts, handler: handler,
		parse: func(d *Delivery) error { return d.parse(opts.StoresFrom) },
	})
}

// consume fills in the defaults and consumes until ctx is done.
func (b *Bus) consume(ctx context.Context, c *consumption) error {
	opts := &c.opts
	if opts.Durable == "" {
		return errors.New("consuming: no durable name")
	}
	if opts.MaxAckPending == 0 {
		opts.MaxAckPending = 1024
	}
	if opts.AckWait == 0 {
		opts.AckWait = 30 * time.Second
	}
	if opts.Backoff == nil {
		opts.Backoff = jittered
	}
	if opts.OnReject == nil {
		opts.OnReject = func(context.Context, string) {}
	}
	c.bus, c.pacer = b, newPacer()
	var wg sync.WaitGroup
	defer wg.Wait()
	pacing, stop := context.WithCancel(ctx)
	defer stop()
	wg.Go(func() { c.pacer.run(pacing, opts.AckWait/3) })

	for attempt := 1; ; attempt++ {
		started, err := c.run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrConsumer):
			return err
		case started:
			attempt = 1
		}
		delay := exponential(attempt)
		b.logger.WarnContext(ctx, "consumer is interrupted", "durable", opts.Durable, "retry_in", delay, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}

// consumption is one call of Consume or ConsumeOutcomes.
type consumption struct {
	bus    *Bus
	stream jetstream.Stream
	// name is that of the stream.
	name string
	// deliver is where a consumer that is new begins.
	deliver jetstream.DeliverPolicy
	// unused is after what time without a reader the server deletes the consumer. Zero is never.
	unused  time.Duration
	opts    ConsumeOptions
	handler func(context.Context, *Delivery)
	// parse reads the event of a delivery, and checks that it is one for this cluster.
	parse func(*Delivery) error
	pacer *pacer
}

// run consumes until something is wrong. It tells whether there was anything right before.
func (c *consumption) run(ctx context.Context) (started bool, err error) {
	consumer, err := c.ensure(ctx)
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
	defer c.handBack(ctx, messages)
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return true, fmt.Errorf("consuming: %w", err)
		}
		c.receive(ctx, msg)
	}
}

// receive hands one message to the handler, or refuses it.
func (c *consumption) receive(ctx context.Context, msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		// No message of a consumer is without; what is cannot be answered either.
		c.bus.logger.WarnContext(ctx, "message has no metadata", "subject", msg.Subject(), "err", err)
		return
	}
	d := &Delivery{
		Subject: msg.Subject(), Seq: meta.Sequence.Stream, Deliveries: int(meta.NumDelivered),
		Header: msg.Headers(), Received: c.bus.now(),
		bus: c.bus, stream: c.name, msg: msg, data: msg.Data(), storedAt: meta.Timestamp, pacer: c.pacer, backoff: c.opts.Backoff,
	}
	c.pacer.watch(d)
	if err := c.parse(d); err != nil {
		if reject, ok := errors.AsType[*RejectError](err); ok {
			c.opts.OnReject(ctx, reject.Reason)
		}
		d.Done(ctx, err)
		return
	}
	c.handler(ctx, d)
}

// handBack gives what was fetched and not handed over to whoever consumes next, instead of letting it wait for AckWait.
func (c *consumption) handBack(ctx context.Context, messages jetstream.MessagesContext) {
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

// ensure gives the durable consumer, created or changed to what it should be.
func (c *consumption) ensure(ctx context.Context) (jetstream.Consumer, error) {
	want := jetstream.ConsumerConfig{
		Durable: c.opts.Durable, FilterSubjects: c.opts.FilterSubjects,
		DeliverPolicy: c.deliver, AckPolicy: jetstream.AckExplicitPolicy,
		MaxDeliver: -1, MaxAckPending: c.opts.MaxAckPending, AckWait: c.opts.AckWait,
		InactiveThreshold: c.unused,
	}
	consumer, err := c.stream.Consumer(ctx, c.opts.Durable)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		consumer, err = c.stream.CreateConsumer(ctx, want)
		if err != nil {
			return nil, fmt.Errorf("creating consumer %s of %s: %w", c.opts.Durable, c.name, err)
		}
		return consumer, nil
	case err != nil:
		return nil, fmt.Errorf("reading consumer %s of %s: %w", c.opts.Durable, c.name, err)
	}
	field, found, required := consumerDifference(consumer.CachedInfo().Config, want)
	if field == "" {
		return consumer, nil
	}
	consumer, err = c.stream.UpdateConsumer(ctx, want)
	if err == nil {
		return consumer, nil
	}
	err = fmt.Errorf("%s of %s: %s is %v, must be %v: %w", c.opts.Durable, c.name, field, found, required, err)
	if _, refused := errors.AsType[*jetstream.APIError](err); refused {
		return nil, fmt.Errorf("%w: %w", ErrConsumer, err)
	}
	return nil, err
}

// consumerDifference names the first field that keeps the consumer from doing what was asked for.
func consumerDifference(have, want jetstream.ConsumerConfig) (field string, found, required any) {
	filters := have.FilterSubjects
	if have.FilterSubject != "" {
		filters = []string{have.FilterSubject}
	}
	slices.Sort(filters)
	wanted := slices.Sorted(slices.Values(want.FilterSubjects))
	switch {
	case have.AckPolicy != want.AckPolicy:
		return "ack_policy", have.AckPolicy, want.AckPolicy
	case have.DeliverPolicy != want.DeliverPolicy && have.DeliverPolicy != jetstream.DeliverLastPerSubjectPolicy:
		return "deliver_policy", have.DeliverPolicy, want.DeliverPolicy
	case !slices.Equal(filters, wanted):
		return "filter_subjects", filters, wanted
	case have.MaxDeliver > 0:
		return "max_deliver", have.MaxDeliver, want.MaxDeliver
	case have.MaxAckPending != want.MaxAckPending:
		return "max_ack_pending", have.MaxAckPending, want.MaxAckPending
	case have.AckWait != want.AckWait:
		return "ack_wait", have.AckWait, want.AckWait
	}
	return "", nil, nil
}

// Lag is how far a consumer is behind.
type Lag struct {
	// Pending is how many events it was not delivered yet.
	Pending uint64
	// AckPending is how many it was delivered that are in flight.
	AckPending int
}

// Lag asks how far a durable consumer is behind.
func (b *Bus) Lag(ctx context.Context, durable string) (Lag, error) {
	consumer, err := b.changes.Consumer(ctx, durable)
	if err != nil {
		return Lag{}, fmt.Errorf("reading consumer %s of %s: %w", durable, StreamChanges, err)
	}
	info := consumer.CachedInfo()
	return Lag{Pending: info.NumPending, AckPending: info.NumAckPending}, nil
}

// jittered spreads the events that failed together.
func jittered(deliveries int) time.Duration {
	delay := exponential(deliveries)
	return delay - time.Duration(rand.Int64N(int64(delay)/5))
}

// exponential doubles from 1 second to 1 minute.
func exponential(attempt int) time.Duration {
	return min(time.Minute, time.Second<<min(max(attempt-1, 0), 6))
}
