package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// ConsumeOptions configures Bus.Consume and Bus.ConsumeOutcomes.
type ConsumeOptions struct {
	// Durable is the name of the consumer, which keeps its position across restarts. On the server, its name has a suffix: see secrets.consumerName.
	// Required.
	Durable string
	// FilterSubjects restricts the events of Consume. If empty, it reads the changes of the bus's cluster. ConsumeOutcomes sets it.
	FilterSubjects []string
	MaxAckPending  int // limits the events in flight; zero means 1024
	// AckWait is how long the events of a process that died stay in flight before another process gets them. A live process
	// sends a heartbeat for each event in flight three times per AckWait. Zero means 30 seconds.
	AckWait time.Duration
	// FromNow makes a new consumer start with the next event, as ConsumeOutcomes always does, and not with the state of the stream.
	FromNow bool
	// Backoff returns the delay before the redelivery of an event whose handling failed, given the number of deliveries so far.
	// Nil means 1 second, doubled up to 1 minute, with a fifth of jitter.
	Backoff func(deliveries int) time.Duration
	// WithoutDeadLetters makes Consume drop rejected events without a copy on StreamDeadLetters. It is for programs whose events the actuator reads,
	// too, because the actuator makes the copy. ConsumeOutcomes makes none, because StreamHistory keeps the event.
	WithoutDeadLetters bool
	// OnReject is called, with one of the Reason constants, for each event that is rejected before the handler sees it. It may be nil.
	OnReject func(ctx context.Context, reason string)
}

func (o ConsumeOptions) withDefaults() (ConsumeOptions, error) {
	if o.Durable == "" {
		return o, errors.New("consuming: no durable name")
	}
	o.MaxAckPending, o.AckWait = cmp.Or(o.MaxAckPending, 1024), cmp.Or(o.AckWait, 30*time.Second)
	if o.Backoff == nil {
		o.Backoff = redeliveryDelay
	}
	if o.OnReject == nil {
		o.OnReject = func(context.Context, string) {}
	}
	return o, nil
}

// redeliveryDelay returns the delay before an event that failed is redelivered. It depends only on the number of deliveries so
// far, so that it keeps growing when another process takes over. The jitter keeps programs that failed together from retrying together.
func redeliveryDelay(deliveries int) time.Duration {
	return kube.NthDelay(wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 7, Cap: time.Minute}, deliveries)
}

// Consume passes the changes of the cluster to the handler, one at a time and in the order of the stream, until ctx is done, and then returns nil.
// The handler should return quickly and call Delivery.Done later, from any goroutine. A redelivered event is out of order.
//
// Consume creates the durable consumer if there is none, and updates it if it differs from the options. It returns an error if the server rejects the
// update, or allows fewer events in flight. Everything else is logged and retried with backoff: a restart of NATS, or a deleted consumer, which is
// created again and starts from the state of the stream. The server deletes a consumer after 30 days without a reader, for example if the key of the
// program's NATS user was replaced.
func (b *Bus) Consume(ctx context.Context, opts ConsumeOptions, handler func(ctx context.Context, d *Delivery)) error {
	if len(opts.FilterSubjects) == 0 {
		opts.FilterSubjects = events.SourceFilters(b.cluster)
	}
	c, err := b.newConsumption(b.changes, opts)
	if err != nil {
		return err
	}
	return c.run(ctx, handler)
}

// ConsumeOutcomes is Consume for the outcomes of the cluster. It reads StreamHistory, so it delivers superseded outcomes too.
//
// A new consumer starts with the next outcome, not with past ones.
func (b *Bus) ConsumeOutcomes(ctx context.Context, opts ConsumeOptions, handler func(ctx context.Context, d *Delivery)) error {
	opts.FilterSubjects = []string{events.HistorySubject(events.OutcomeFilter(b.cluster))}
	opts.FromNow, opts.WithoutDeadLetters = true, true
	c, err := b.newConsumption(b.history, opts)
	if err != nil {
		return err
	}
	c.ofOutcomes = true
	return c.run(ctx, handler)
}

// consumerConfig returns the required configuration of the consumer with the given name on the server.
func (o ConsumeOptions) consumerConfig(name string) jetstream.ConsumerConfig {
	deliver := jetstream.DeliverAllPolicy
	if o.FromNow {
		deliver = jetstream.DeliverNewPolicy
	}
	config := jetstream.ConsumerConfig{
		Durable: name, FilterSubjects: o.FilterSubjects,
		DeliverPolicy: deliver, AckPolicy: jetstream.AckExplicitPolicy,
		MaxDeliver: -1, MaxAckPending: o.MaxAckPending, AckWait: o.AckWait, InactiveThreshold: retention,
	}
	if len(o.FilterSubjects) == 1 {
		// A single filter is part of the request's subject, so that NATS permissions can restrict it.
		config.FilterSubject, config.FilterSubjects = o.FilterSubjects[0], nil
	}
	return config
}

// ensureConsumer creates or updates the durable consumer. The error wraps errConsumer if the server rejects the update, or allows less in flight. It
// and the log have the name of the options.
func ensureConsumer(
	ctx context.Context, stream jetstream.Stream, durable string, want jetstream.ConsumerConfig, logger *slog.Logger,
) (jetstream.Consumer, error) {
	name := stream.CachedInfo().Config.Name
	consumer, err := stream.Consumer(ctx, want.Durable)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		consumer, err = stream.CreateConsumer(ctx, want)
		if hasCode(err, errCodeMaxAckPending) {
			return nil, fmt.Errorf("%w: %s of %s: max_ack_pending has to be %d: %w", errConsumer, durable, name, want.MaxAckPending, err)
		}
		if err != nil {
			return nil, fmt.Errorf("creating consumer %s of %s: %w", durable, name, withConsumers(ctx, stream, err))
		}
		return consumer, nil
	case err != nil:
		return nil, fmt.Errorf("reading consumer %s of %s: %w", durable, name, err)
	}
	wrong := consumerDifferences(consumer.CachedInfo().Config, want, time.Now())
	if len(wrong) == 0 {
		return consumer, nil
	}
	field, found, required := wrong[0].field, wrong[0].found, wrong[0].required
	consumer, err = stream.UpdateConsumer(ctx, want)
	if err == nil {
		logger.WarnContext(ctx, "corrected a consumer that differed from its declaration", "durable", durable, "stream", name, "field", field,
			"found", found, "required", required)
		return consumer, nil
	}
	err = fmt.Errorf("%s of %s: %s is %s, want %s: %w", durable, name, field, found, required, err)
	if _, rejected := errors.AsType[*jetstream.APIError](err); rejected {
		return nil, fmt.Errorf("%w: %w", errConsumer, err)
	}
	return nil, err
}

// consumerDifferences returns the fields in which a consumer differs from the wanted configuration. It compares every field that can keep events, or
// parts of them, from being delivered: anyone who may create consumers of the stream may set these fields.
func consumerDifferences(have, want jetstream.ConsumerConfig, now time.Time) []difference {
	have.FilterSubject, have.FilterSubjects = "", filtersOf(have)
	must := have
	must.FilterSubjects, must.DeliverPolicy, must.ReplayPolicy = filtersOf(want), want.DeliverPolicy, want.ReplayPolicy
	must.AckPolicy, must.MaxAckPending, must.AckWait = want.AckPolicy, want.MaxAckPending, want.AckWait
	must.MaxDeliver, must.InactiveThreshold = min(have.MaxDeliver, want.MaxDeliver), want.InactiveThreshold
	must.HeadersOnly, must.BackOff, must.PriorityGroups = false, nil, nil
	must.MaxRequestBatch, must.MaxRequestExpires, must.MaxRequestMaxBytes = 0, 0, 0
	if have.PauseUntil != nil && have.PauseUntil.After(now) {
		must.PauseUntil = nil
	}
	return differences(have, must)
}

func filtersOf(config jetstream.ConsumerConfig) []string {
	if config.FilterSubject != "" {
		return []string{config.FilterSubject}
	}
	return slices.Sorted(slices.Values(config.FilterSubjects))
}
