package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// burst is how many messages are sent at once, where that many were not sent before.
	burst = 10
	// maxTries is after how many tries a message is given up.
	maxTries = 30
	// maxDelay is the longest time between two tries, unless the service asks for more.
	maxDelay = 5 * time.Minute
	// maxOpen is how many outcomes are in hand at a time. The others are on the stream.
	maxOpen = 64
	// consumeRetry is the time until the stream is asked again for a consumer that it refused.
	consumeRetry = time.Minute
)

// sink is one place that outcomes are told to.
type sink struct {
	name, kind string
	verbs      []events.Verb
	namespaces []string
	// template is empty where there is none.
	template template
	format   format
	poster   *poster
	limiter  *rate.Limiter
	backoff  func(try int) time.Duration
	log      *slog.Logger
	metrics  *metrics
}

// durable is the name of the sink's consumer. No name of a cluster or of a sink has the underscore.
func (s *sink) durable(cluster string) string { return "notify-" + cluster + "_" + s.name }

// run sends what the stream has until ctx is done.
func (s *sink) run(ctx context.Context, bus *events.Bus) {
	queue := make(chan *events.Delivery, maxOpen)
	var sending sync.WaitGroup
	defer sending.Wait()
	defer close(queue)
	sending.Go(func() {
		for d := range queue {
			d.Done(ctx, s.tell(d.TraceContext(ctx), d.Outcome))
		}
	})
	options := events.ConsumeOptions{Durable: s.durable(bus.Cluster()), MaxAckPending: maxOpen}
	for ctx.Err() == nil {
		err := bus.ConsumeOutcomes(ctx, options, func(ctx context.Context, d *events.Delivery) {
			if !s.wants(d.Outcome) {
				d.Done(ctx, nil)
				return
			}
			select {
			case queue <- d:
			case <-ctx.Done():
				d.Done(ctx, context.Canceled)
			}
		})
		if err == nil {
			return
		}
		s.log.ErrorContext(ctx, "outcomes cannot be read for notifications", "retry_in", consumeRetry, "err", err)
		pause(ctx, consumeRetry)
	}
}

// wants tells whether the outcome is to be told.
func (s *sink) wants(o events.Outcome) bool {
	return slices.Contains(s.verbs, o.Verb) && (len(s.namespaces) == 0 || slices.Contains(s.namespaces, o.Workload.Namespace))
}

// tell sends an outcome, however often it must be tried. It returns nil when nothing more is to be done about it, and
// context.Canceled where ctx ended before.
func (s *sink) tell(ctx context.Context, o events.Outcome) error {
	log := s.log.With("workload", o.Workload.String(), "namespace", o.Workload.Namespace, "verb", string(o.Verb), "id", o.ID())
	body, err := s.body(o)
	if err != nil {
		s.metrics.tried(ctx, s, resultRefused)
		log.ErrorContext(ctx, "a notification cannot be made", "err", err)
		return nil
	}
	for try := 1; ; try++ {
		if s.limiter.Wait(ctx) != nil {
			return context.Canceled
		}
		err := s.poster.post(ctx, body)
		switch {
		case err == nil:
			s.metrics.tried(ctx, s, resultSent)
			log.DebugContext(ctx, "a notification was sent", "tries", try)
			return nil
		case ctx.Err() != nil:
			return context.Canceled
		case errors.Is(err, errRefused):
			s.metrics.tried(ctx, s, resultRefused)
			log.ErrorContext(ctx, "a notification was refused", "tries", try, "err", err)
			return nil
		case try == maxTries:
			s.metrics.tried(ctx, s, resultGivenUp)
			log.ErrorContext(ctx, "a notification is given up", "tries", try, "err", err)
			return nil
		}
		delay := s.backoff(try)
		if later, ok := errors.AsType[*events.RetryError](err); ok {
			delay = later.After
		}
		s.metrics.tried(ctx, s, resultRetried)
		log.WarnContext(ctx, "a notification could not be sent", "tries", try, "retry_in", delay, "err", err)
		pause(ctx, delay)
	}
}

// body is what is posted of an outcome.
func (s *sink) body(o events.Outcome) ([]byte, error) {
	n := newNotice(o, s.format.escape)
	switch chat := s.format.payload != nil; {
	case chat && s.template == "":
		return s.format.body(n.text())
	case chat:
		return s.format.body(s.template.render(n, verbatim))
	case s.template == "":
		body, err := json.Marshal(n)
		if err != nil {
			return nil, fmt.Errorf("writing the message: %w", err)
		}
		return body, nil
	}
	return []byte(s.template.render(n, inJSON)), nil
}

// exponential doubles from 1 second to maxDelay.
func exponential(try int) time.Duration { return min(maxDelay, time.Second<<min(try-1, 16)) }

// pause waits, or until ctx is done.
func pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
