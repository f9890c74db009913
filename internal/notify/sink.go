package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
)

const (
	// burst is how many messages may be sent at once after a quiet period.
	burst = 10
	// maxTries is the number of attempts in a row after which a message is parked, so that it does not delay the others.
	maxTries = 5
	// maxDeliveries is how often a message is delivered before it is given up. That takes about three days, a long weekend.
	maxDeliveries = 280
	// maxInFlight limits the outcomes of a sink that are in memory, including parked ones. The others wait on the stream.
	maxInFlight = 256
	// consumeRetry is the time between attempts to consume, if the stream refuses.
	consumeRetry = time.Minute
	// lookInterval is how often a sink checks whether the stream still has its parked messages.
	lookInterval = time.Minute
)

// newBackoff returns delays of 1 second, doubled up to 5 minutes, with a tenth of jitter.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Minute}
}

// newParking returns how long a message is parked: 1 minute, doubled up to 15 minutes, with a tenth of jitter.
func newParking() wait.Backoff {
	return wait.Backoff{Duration: time.Minute, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 15 * time.Minute}
}

// sink sends outcomes to one address.
type sink struct {
	name, kind string
	verbs      []events.Verb
	namespaces []string
	// heldReasons selects outcomes held. Empty means those that wantsHeld says.
	heldReasons []string
	// body returns the body of the request that posts an outcome.
	body    func(events.Outcome) ([]byte, error)
	poster  *poster
	limiter *rate.Limiter
	// backoff has the delays between consecutive attempts to send a message, and parking has the times for which it is parked.
	backoff, parking wait.Backoff
	// look is lookInterval, except in tests. parked has the messages that wait on the stream.
	look   time.Duration
	parked *parked

	log     *slog.Logger
	metrics *metrics
}

// durable returns the name of the sink's consumer. Names of clusters and sinks have no underscore.
func (s *sink) durable(cluster string) string { return "notify-" + cluster + "_" + s.name }

// run sends the outcomes on the stream until ctx is done.
func (s *sink) run(ctx context.Context, bus *events.Bus) {
	queue := newQueue()
	var sending sync.WaitGroup
	defer sending.Wait()
	defer close(queue.next)
	sending.Go(func() {
		for of := range queue.next {
			d := queue.get(of)
			err := s.send(d.TraceContext(ctx), d.Outcome, d.Deliveries)
			if errors.Is(err, errParked) {
				s.parked.add(d.Seq, d.Expires())
			}
			queue.finish(ctx, of, err)
		}
	})
	looking, stop := context.WithCancel(ctx)
	defer stop()
	sending.Go(func() { s.lookForLost(looking, bus.HistorySpan) })
	options := events.ConsumeOptions{Durable: s.durable(bus.Cluster()), MaxAckPending: maxInFlight, Backoff: s.parkedFor}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		err := bus.ConsumeOutcomes(ctx, options, func(ctx context.Context, d *events.Delivery) {
			s.parked.remove(d.Seq)
			if !s.wants(d.Outcome) {
				d.Done(ctx, nil)
				return
			}
			queue.add(ctx, d)
		})
		if err != nil {
			s.log.ErrorContext(ctx, "outcomes cannot be consumed", "retry_in", consumeRetry, "err", err)
		}
	}, consumeRetry, 0.1, true)
}

// lookForLost counts, until ctx is done, the parked messages that the stream has dropped, because it was full, because it was purged, or because
// they were kept for a short time only. They will not be sent. Span returns the sequences of the oldest and the newest event on the stream.
func (s *sink) lookForLost(ctx context.Context, span func(context.Context) (first, last uint64, err error)) {
	tick := time.NewTicker(s.look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lost := s.parked.dropExpired(time.Now())
		// While NATS is unreachable, leave the others to the next check.
		if first, last, err := span(ctx); err == nil {
			lost += s.parked.dropOutside(first, last)
		}
		if lost > 0 {
			s.metrics.lost(ctx, s.name, s.kind, lost)
			s.log.ErrorContext(ctx, "notifications lost: the stream has dropped their outcomes while they were parked", "count", lost)
		}
	}
}

// parkedFor returns how long a message is parked after the given number of deliveries. The server keeps the message and counts
// the deliveries, so this survives restarts.
func (s *sink) parkedFor(deliveries int) time.Duration {
	return backoff.Nth(s.parking, deliveries)
}

// wants reports whether the sink sends the outcome.
func (s *sink) wants(o events.Outcome) bool {
	return slices.Contains(s.verbs, o.Verb) && s.wantsHeld(o) &&
		(len(s.namespaces) == 0 || slices.Contains(s.namespaces, o.Workload.Namespace))
}

// send sends one outcome, with a few attempts at its first delivery and one at each later one. It returns nil if nothing is left
// to do, whether or not the message was sent, errParked if the outcome is to be delivered again later, and context.Canceled if
// ctx ended first.
func (s *sink) send(ctx context.Context, o events.Outcome, deliveries int) error {
	log := s.log.With("workload", o.Workload.String(), "namespace", o.Workload.Namespace, "verb", string(o.Verb), "id", o.ID(),
		"deliveries", deliveries)
	body, err := s.body(o)
	if err != nil {
		s.metrics.attempt(ctx, s.name, s.kind, resultRefused)
		log.ErrorContext(ctx, "notification not rendered", "err", err)
		return nil
	}
	delays := s.backoff
	for try := 1; ; try++ {
		if s.limiter.Wait(ctx) != nil {
			return context.Canceled
		}
		err := s.poster.post(ctx, body)
		switch {
		case err == nil:
			s.metrics.attempt(ctx, s.name, s.kind, resultSent)
			log.DebugContext(ctx, "notification sent", "tries", try)
			return nil
		case ctx.Err() != nil:
			return context.Canceled
		case errors.Is(err, errRefused):
			s.metrics.attempt(ctx, s.name, s.kind, resultRefused)
			log.ErrorContext(ctx, "notification refused", "tries", try, "err", err)
			return nil
		case deliveries >= maxDeliveries:
			s.metrics.attempt(ctx, s.name, s.kind, resultGivenUp)
			log.ErrorContext(ctx, "notification given up", "err", err)
			return nil
		case try == maxTries, deliveries > 1:
			s.metrics.attempt(ctx, s.name, s.kind, resultParked)
			log.WarnContext(ctx, "notification parked, others go on", "tries", try, "err", err)
			return errParked
		}
		delay := delays.Step()
		if later, ok := errors.AsType[*retryAfterError](err); ok {
			delay = later.after
		}
		s.metrics.attempt(ctx, s.name, s.kind, resultRetried)
		log.WarnContext(ctx, "notification not sent", "tries", try, "retry_in", delay, "err", err)
		if !backoff.Sleep(ctx, delay) {
			return context.Canceled
		}
	}
}
