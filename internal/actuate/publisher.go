package actuate

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
)

const (
	// publishBatch is the maximum number of outcomes that are published at a time.
	publishBatch = 256
	// publishTimeout bounds one attempt to publish outcomes.
	publishTimeout = 5 * time.Second
	// publishRetry is the delay between two attempts.
	publishRetry = time.Second
)

// publisher publishes outcomes to the stream, in a goroutine of its own.
type publisher struct {
	bus     *events.Bus
	log     *slog.Logger
	metrics *metrics
	// batches go to run.
	batches chan []events.Outcome
}

// run publishes until close is called. Once the context is done, it gives up what is left.
func (p *publisher) run(ctx context.Context) {
	for outcomes := range p.batches {
		for batch := range slices.Chunk(outcomes, publishBatch) {
			p.publish(ctx, batch)
		}
	}
}

// close ends run once it has published what it was given, and the last outcomes, if it takes these within the time of one attempt.
func (p *publisher) close(ctx context.Context, last []events.Outcome) {
	if len(last) > 0 {
		select {
		case p.batches <- last:
		case <-time.After(publishTimeout):
			p.giveUp(ctx, last)
		}
	}
	close(p.batches)
}

// publish publishes outcomes, with as many attempts as that takes, until the context is done.
func (p *publisher) publish(ctx context.Context, outcomes []events.Outcome) {
	for ctx.Err() == nil {
		if outcomes = p.try(ctx, outcomes); len(outcomes) == 0 {
			return
		}
		backoff.Sleep(ctx, publishRetry)
	}
	p.giveUp(ctx, outcomes)
}

func (p *publisher) giveUp(ctx context.Context, outcomes []events.Outcome) {
	p.log.WarnContext(ctx, "outcomes not published", "outcomes", len(outcomes))
}

// try makes one attempt to publish outcomes. It returns those that another attempt may help: one that the bus rejects would only stand in the way of
// the others.
func (p *publisher) try(ctx context.Context, outcomes []events.Outcome) (left []events.Outcome) {
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var failure error
	for i, err := range p.bus.PublishOutcomes(bounded, outcomes...) {
		p.metrics.published(ctx, err)
		switch {
		case retriable(err):
			left, failure = append(left, outcomes[i]), err
		case err != nil:
			p.log.WarnContext(outcomes[i].Trace.Context(ctx), "outcome rejected", "workload", outcomes[i].Workload.String(),
				"namespace", outcomes[i].Workload.Namespace, "verb", string(outcomes[i].Verb), "err", err)
		}
	}
	if failure != nil {
		p.log.WarnContext(ctx, "publishing outcomes failed; retrying", "outcomes", len(left), "retry_in", publishRetry, "err", failure)
	}
	return left
}

// retriable reports whether another attempt may succeed.
func retriable(err error) bool {
	var reject *events.RejectError
	return err != nil && !errors.As(err, &reject)
}
