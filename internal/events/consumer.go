package events

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// ensureConsumer returns the durable consumer of the stream, created or updated to the configuration. The error wraps
// errConsumer if the server rejects the update.
func ensureConsumer(ctx context.Context, stream jetstream.Stream, want jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	name := stream.CachedInfo().Config.Name
	consumer, err := stream.Consumer(ctx, want.Durable)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		consumer, err = stream.CreateConsumer(ctx, want)
		if err != nil {
			return nil, fmt.Errorf("creating consumer %s of %s: %w", want.Durable, name, err)
		}
		return consumer, nil
	case err != nil:
		return nil, fmt.Errorf("reading consumer %s of %s: %w", want.Durable, name, err)
	}
	field, found, required := consumerDifference(consumer.CachedInfo().Config, want)
	if field == "" {
		return consumer, nil
	}
	consumer, err = stream.UpdateConsumer(ctx, want)
	if err == nil {
		return consumer, nil
	}
	err = fmt.Errorf("%s of %s: %s is %v, want %v: %w", want.Durable, name, field, found, required, err)
	if _, rejected := errors.AsType[*jetstream.APIError](err); rejected {
		return nil, fmt.Errorf("%w: %w", errConsumer, err)
	}
	return nil, err
}

// consumerDifference returns the first field in which a consumer differs from what is wanted, or "".
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
	case have.InactiveThreshold != want.InactiveThreshold:
		return "inactive_threshold", have.InactiveThreshold, want.InactiveThreshold
	}
	return "", nil, nil
}

// Lag is how far a consumer is behind its stream.
type Lag struct {
	// Pending counts the events that were not delivered yet.
	Pending uint64
	// AckPending counts the events in flight.
	AckPending int
	// AckFloor is the sequence on the stream up to which every event was acked.
	AckFloor uint64
}

// Lag returns how far a durable consumer of StreamChanges is behind.
func (b *Bus) Lag(ctx context.Context, durable string) (Lag, error) {
	consumer, err := b.changes.Consumer(ctx, durable)
	if err != nil {
		return Lag{}, fmt.Errorf("reading consumer %s of %s: %w", durable, StreamChanges, err)
	}
	info := consumer.CachedInfo()
	return Lag{Pending: info.NumPending, AckPending: info.NumAckPending, AckFloor: info.AckFloor.Stream}, nil
}
