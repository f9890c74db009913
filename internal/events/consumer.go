package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ensureConsumer returns the durable consumer of the stream, created or updated to the configuration. The error wraps
// errConsumer if the server rejects the update.
func ensureConsumer(
	ctx context.Context, stream jetstream.Stream, want jetstream.ConsumerConfig, logger *slog.Logger,
) (jetstream.Consumer, error) {
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
	field, found, required := consumerDifference(consumer.CachedInfo().Config, want, time.Now())
	if field == "" {
		return consumer, nil
	}
	consumer, err = stream.UpdateConsumer(ctx, want)
	if err == nil {
		logger.WarnContext(ctx, "consumer was not as required, and is now", "durable", want.Durable, "stream", name, "field", field,
			"found", fmt.Sprint(found), "required", fmt.Sprint(required))
		return consumer, nil
	}
	err = fmt.Errorf("%s of %s: %s is %v, want %v: %w", want.Durable, name, field, found, required, err)
	if _, rejected := errors.AsType[*jetstream.APIError](err); rejected {
		return nil, fmt.Errorf("%w: %w", errConsumer, err)
	}
	return nil, err
}

// consumerDifference returns the first field in which a consumer differs from what is wanted, or "". It compares every field that can keep
// events, or parts of them, from being delivered: anyone who may create consumers of the stream may set these fields.
func consumerDifference(have, want jetstream.ConsumerConfig, now time.Time) (field string, found, required any) {
	filters, wanted := filtersOf(have), filtersOf(want)
	paused := have.PauseUntil != nil && have.PauseUntil.After(now)
	for _, f := range []struct {
		name        string
		have, want  any
		isDifferent bool
	}{
		{"ack_policy", have.AckPolicy, want.AckPolicy, have.AckPolicy != want.AckPolicy},
		{"deliver_policy", have.DeliverPolicy, want.DeliverPolicy, have.DeliverPolicy != want.DeliverPolicy},
		{"filter_subjects", filters, wanted, !slices.Equal(filters, wanted)},
		{"max_deliver", have.MaxDeliver, want.MaxDeliver, have.MaxDeliver > 0},
		{"max_ack_pending", have.MaxAckPending, want.MaxAckPending, have.MaxAckPending != want.MaxAckPending},
		{"ack_wait", have.AckWait, want.AckWait, have.AckWait != want.AckWait},
		{"inactive_threshold", have.InactiveThreshold, want.InactiveThreshold, have.InactiveThreshold != want.InactiveThreshold},
		{"pause_until", have.PauseUntil, "none", paused},
		{"headers_only", have.HeadersOnly, false, have.HeadersOnly},
		{"backoff", have.BackOff, "none", len(have.BackOff) > 0},
		{"max_batch", have.MaxRequestBatch, 0, have.MaxRequestBatch > 0},
		{"max_expires", have.MaxRequestExpires, 0, have.MaxRequestExpires > 0},
		{"max_bytes", have.MaxRequestMaxBytes, 0, have.MaxRequestMaxBytes > 0},
		{"priority_groups", have.PriorityGroups, "none", len(have.PriorityGroups) > 0},
		{"replay_policy", have.ReplayPolicy, want.ReplayPolicy, have.ReplayPolicy != want.ReplayPolicy},
	} {
		if f.isDifferent {
			return f.name, f.have, f.want
		}
	}
	return "", nil, nil
}

// filtersOf returns the filter subjects of a consumer, sorted.
func filtersOf(config jetstream.ConsumerConfig) []string {
	if config.FilterSubject != "" {
		return []string{config.FilterSubject}
	}
	return slices.Sorted(slices.Values(config.FilterSubjects))
}
