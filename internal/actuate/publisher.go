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

	// batches go to run, and published come back from it. Nobody reads those any more once closing is closed.
	batches   chan []report
	published chan []report
	closing   chan struct{}
}

func newPublisher(bus *events.Bus, log *slog.Logger, metrics *metrics) *publisher {
	return &publisher{
		bus: bus, log: log, metrics: metrics,
		batches: make(chan []report), published: make(chan []report), closing: make(chan struct{}),
	}
}

// run publishes until close is called, or the context is done.
func (p *publisher) run(ctx context.Context) {
	for {
		select {
		case reports, ok := <-p.batches:
			if !ok {
				return
			}
			for batch := range slices.Chunk(reports, publishBatch) {
				p.publish(ctx, batch)
			}
		case <-ctx.Done():
			return
		}
	}
}

// close ends run once it has published what it was given. Left are the outcomes that were not handed to it.
func (p *publisher) close(ctx context.Context, left []report) {
	p.giveUp(ctx, left)
	close(p.closing)
	close(p.batches)
}

// publish publishes reports, with as many attempts as that takes, until the context is done.
func (p *publisher) publish(ctx context.Context, reports []report) {
	for ctx.Err() == nil {
		published, left := p.try(ctx, reports)
		select {
		case p.published <- published:
		case <-p.closing:
		}
		if reports = left; len(reports) == 0 {
			return
		}
		backoff.Sleep(ctx, publishRetry)
	}
	p.giveUp(ctx, reports)
}

func (p *publisher) giveUp(ctx context.Context, reports []report) {
	if len(reports) > 0 {
		p.log.WarnContext(ctx, "outcomes not published", "outcomes", len(reports))
	}
}

// try makes one attempt to publish reports. It returns those that are finished, and those that another attempt may help: an outcome that
// the bus rejects would only stand in the way of the others.
func (p *publisher) try(ctx context.Context, reports []report) (done, left []report) {
	outcomes := make([]events.Outcome, len(reports))
	for i := range reports {
		outcomes[i] = reports[i].outcome
	}
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var failure error
	for i, err := range p.bus.PublishOutcomes(bounded, outcomes...) {
		p.metrics.published(ctx, err)
		if retriable(err) {
			left, failure = append(left, reports[i]), err
			continue
		}
		done = append(done, reports[i])
		if err != nil {
			p.log.WarnContext(outcomes[i].Trace.Context(ctx), "outcome rejected", "workload", outcomes[i].Workload.String(),
				"namespace", outcomes[i].Workload.Namespace, "verb", string(outcomes[i].Verb), "err", err)
		}
	}
	if failure != nil {
		p.log.WarnContext(ctx, "publishing outcomes failed; retrying", "outcomes", len(left), "retry_in", publishRetry, "err", failure)
	}
	return done, left
}

// retriable reports whether another attempt may succeed.
func retriable(err error) bool {
	var reject *events.RejectError
	return err != nil && !errors.As(err, &reject)
}
