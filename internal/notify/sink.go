package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// burst is the number of messages that may be sent at once after a quiet period.
	burst = 10
	// maxTries is the number of attempts in a row after which a message is parked, so that it does not delay the others.
	maxTries = 5
	// maxDeliveries is the number of deliveries after which a message is given up. That takes about three days, a long weekend.
	maxDeliveries = 280
	// maxInFlight limits the outcomes of a sink that are in memory, including parked ones. The others wait on the stream.
	maxInFlight = 256
	// consumeRetry is the time between attempts to consume, if the stream refuses.
	consumeRetry = time.Minute
	// lookInterval is how often a sink checks whether the stream still has its parked messages.
	lookInterval = time.Minute
)

// errParked means that a message is to be sent again later.
var errParked = errors.New("parked")

type sink struct {
	name, kind string
	verbs      []events.Verb
	namespaces []string
	// heldReasons selects held outcomes. Empty means the default of the table heldReasons.
	heldReasons []string
	// body returns the body of the request that posts an outcome.
	body    func(events.Outcome) ([]byte, error)
	poster  *poster
	limiter *rate.Limiter
	// backoff contains the delays between consecutive attempts to send a message, and parking the times for which it is parked.
	backoff, parking wait.Backoff
	// look is lookInterval, except in tests.
	look   time.Duration
	parked *parked

	log     *slog.Logger
	metrics *metrics
}

// makeSink returns a sink that sends every outcome with one of the verbs.
func makeSink(name, kind string, verbs []events.Verb, perMinute int, poster *poster) *sink {
	return &sink{
		name: name, kind: kind, verbs: verbs, poster: poster, limiter: rate.NewLimiter(rate.Every(time.Minute/time.Duration(perMinute)), burst),
		backoff: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Minute},
		parking: wait.Backoff{Duration: time.Minute, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 15 * time.Minute},
		look:    lookInterval, parked: &parked{ends: map[uint64]time.Time{}},
	}
}

// newSink returns the sink of a configuration that parseConfig has checked. It reads the files that the configuration names.
func newSink(c sinkConfig, client *http.Client) (*sink, error) {
	field, text := "url", c.URL
	var err error
	if c.URLFile != "" {
		field = "urlFile"
		if text, err = readSecret(c.URLFile); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}
	format := formats[c.Type]
	address, err := format.address(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	s := makeSink(c.Name, c.Type, c.Verbs, c.Rate.PerMinute, newPoster(address, client))
	s.namespaces, s.heldReasons = c.Namespaces, c.HeldReasons
	s.body = func(o events.Outcome) ([]byte, error) { return format.message(template(c.Template), o) }
	if c.Format == formatCloudEvents {
		s.body = cloudEvent
		s.poster.header.Set("Content-Type", "application/cloudevents+json")
	}
	for i, header := range c.Headers {
		value := header.Value
		if header.File != "" {
			if value, err = readSecret(header.File); err != nil {
				return nil, fmt.Errorf("headers[%d].file: %w", i, err)
			}
			if value == "" || !isHeaderValue(value) {
				return nil, fmt.Errorf("headers[%d].file: the content of %s cannot be a header, want one line of text", i, header.File)
			}
		}
		s.poster.header.Set(header.Name, value)
	}
	return s, nil
}

// durable returns the name of the sink's consumer. Names of clusters and sinks have no underscore.
func (s *sink) durable(cluster string) string { return "notify-" + cluster + "_" + s.name }

// run sends the outcomes on the stream until ctx is done.
func (s *sink) run(ctx context.Context, b *bus.Bus) {
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
	sending.Go(func() { s.lookForLost(looking, b.HistorySpan) })
	options := bus.ConsumeOptions{Durable: s.durable(b.Cluster()), MaxAckPending: maxInFlight, Backoff: s.parkedFor}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		err := b.ConsumeOutcomes(ctx, options, func(ctx context.Context, d *bus.Delivery) {
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

// lookForLost counts, until ctx is done, the parked messages that will not be sent, because the stream has dropped them: it was full or purged, or
// they have expired. Span returns the sequences of the oldest and the newest event on the stream.
func (s *sink) lookForLost(ctx context.Context, span func(context.Context) (first, last uint64, err error)) {
	for kube.Sleep(ctx, s.look) {
		first, last, err := span(ctx)
		if err != nil { // While NATS is unreachable, only expired messages are certainly lost.
			first, last = 0, math.MaxUint64
		}
		if lost := s.parked.drop(time.Now(), first, last); lost > 0 {
			s.metrics.count(ctx, s.name, s.kind, resultLost, lost)
			s.log.ErrorContext(ctx, "notifications lost: the stream dropped their outcomes while they were parked", "count", lost)
		}
	}
}

// parkedFor returns how long a message is parked after the given number of deliveries. The server keeps the message and counts the deliveries, so
// this survives restarts.
func (s *sink) parkedFor(deliveries int) time.Duration { return kube.NthDelay(s.parking, deliveries) }

func (s *sink) wants(o events.Outcome) bool {
	return slices.Contains(s.verbs, o.Verb) && (o.Verb != events.VerbHeld || s.wantsHeld(o.Reason)) &&
		(len(s.namespaces) == 0 || slices.Contains(s.namespaces, o.Workload.Namespace))
}

// wantsHeld reports whether the sink sends outcomes with this reason for a hold. Unknown reasons, as of a later version, are reported by default.
func (s *sink) wantsHeld(reason string) bool {
	if len(s.heldReasons) > 0 {
		return slices.Contains(s.heldReasons, reason)
	}
	loud, known := heldReasons[reason]
	return loud || !known
}

// send sends one outcome, with a few attempts at its first delivery and one at each later one. It returns nil if the outcome is finished, whether or
// not the message was sent, errParked if the outcome is to be delivered again later, and context.Canceled if ctx ended first.
func (s *sink) send(ctx context.Context, o events.Outcome, deliveries int) error {
	log := s.log.With("workload", o.Workload.String(), "namespace", o.Workload.Namespace, "verb", string(o.Verb), "id", o.ID(),
		"deliveries", deliveries)
	count := func(of result) { s.metrics.count(ctx, s.name, s.kind, of, 1) }
	body, err := s.body(o)
	if err != nil {
		count(resultRefused)
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
			count(resultSent)
			log.DebugContext(ctx, "notification sent", "tries", try)
			return nil
		case ctx.Err() != nil:
			return context.Canceled
		case errors.Is(err, errRefused):
			count(resultRefused)
			log.ErrorContext(ctx, "notification refused", "tries", try, "err", err)
			return nil
		case deliveries >= maxDeliveries:
			count(resultGivenUp)
			log.ErrorContext(ctx, "notification given up", "err", err)
			return nil
		case try == maxTries, deliveries > 1:
			count(resultParked)
			log.WarnContext(ctx, "notification parked; continuing with others", "tries", try, "err", err)
			return errParked
		}
		delay := delays.Step()
		if later, ok := errors.AsType[*retryAfterError](err); ok {
			delay = later.after
		}
		count(resultRetried)
		log.WarnContext(ctx, "notification not sent", "tries", try, "retry_in", delay, "err", err)
		if !kube.Sleep(ctx, delay) {
			return context.Canceled
		}
	}
}
