package notify

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/telemetry"
)

const (
	// callBody is the body that Reloader posts to its webhook.
	callBody = `{"webhook":"update successful"}`
	// callName is the value of the label sink for calls.
	callName = "webhook-url"
	// maxCalls is the number of attempts after which the event of a call is dead-lettered: about a day, at the backoff of the bus.
	maxCalls = 1440
)

// CallOptions configure a Caller.
type CallOptions struct {
	// URL is the address of the webhook. It is a secret. Empty means that workloads are rolled instead.
	URL string
	// Logger and Meter are required.
	Logger *slog.Logger
	Meter  metric.Meter
}

// Validate returns an error if the address is invalid. The error does not quote the address.
func (o *CallOptions) Validate() error {
	if o.URL == "" {
		return nil
	}
	_, err := formats[typeWebhook].address(o.URL)
	return err
}

// Caller posts to a webhook when a source changes, instead of rolling workloads. Each event of a change is posted at least once: it is acked when
// the service has responded with a 2xx status, and dead-lettered after about a day of failures. Several Callers of a cluster share the events.
type Caller struct {
	poster   *poster
	log      *slog.Logger
	metrics  *metrics
	rejected metric.Int64Counter
	// tries is maxCalls, except in tests, and backoff is for bus.ConsumeOptions.
	tries   int
	backoff func(deliveries int) time.Duration
}

// NewCaller returns a Caller. The options must be valid.
func NewCaller(options CallOptions) (*Caller, error) {
	address, err := formats[typeWebhook].address(options.URL)
	if err != nil {
		return nil, fmt.Errorf("the webhook: %w", err)
	}
	c := &Caller{poster: newPoster(address, newClient(nil)), log: options.Logger.With("component", "webhook"), tries: maxCalls}
	if c.metrics, err = newMetrics(options.Meter); err != nil {
		return nil, err
	}
	return c, telemetry.MakeInstruments(options.Meter, []telemetry.Instrument{
		telemetry.Counter(&c.rejected, "keyturn.events.rejected", "{event}", "Dead-lettered events.", "reason"),
	})
}

// reject counts a dead-lettered event in the same metric as the actuator that rolls workloads. Only one of the two runs.
func (c *Caller) reject(ctx context.Context, reason string) {
	c.rejected.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

// Run posts until ctx is done, and then returns nil. Events that are not posted by then wait on the stream.
func (c *Caller) Run(ctx context.Context, b *bus.Bus) error {
	queue := make(chan *bus.Delivery, maxInFlight)
	var calling sync.WaitGroup
	defer c.poster.client.CloseIdleConnections()
	defer calling.Wait()
	defer close(queue)
	calling.Go(func() {
		for d := range queue {
			d.Done(ctx, c.call(ctx, d.Change, d.Deliveries))
		}
	})
	options := bus.ConsumeOptions{
		Durable: "webhook-" + b.Cluster(), FromNow: true, MaxAckPending: maxInFlight, Backoff: c.backoff, OnReject: c.reject,
	}
	return b.Consume(ctx, options, func(ctx context.Context, d *bus.Delivery) {
		if !isCalledFor(d.Change) {
			d.Done(ctx, nil)
			return
		}
		select {
		case queue <- d:
		case <-ctx.Done():
			d.Done(ctx, context.Canceled)
		}
	})
}

// isCalledFor reports whether a change affects the content of a source that existed before, whatever the source's annotations say.
func isCalledFor(change events.Change) bool {
	return change.Verb == events.VerbRotated || change.Verb == events.VerbChanged && !change.Created
}

// call posts for one delivery of a change. The error is for bus.Delivery.Done.
func (c *Caller) call(ctx context.Context, change events.Change, deliveries int) error {
	log := c.log.With("source", change.Source.String(), "namespace", change.Source.Namespace, "id", change.ID(), "deliveries", deliveries)
	if ctx.Err() != nil {
		return context.Canceled
	}
	err := c.poster.post(ctx, []byte(callBody))
	switch {
	case err == nil:
		c.metrics.count(ctx, callName, typeWebhook, resultSent, 1)
		log.InfoContext(ctx, "webhook called")
		return nil
	case ctx.Err() != nil:
		return context.Canceled
	case deliveries >= c.tries:
		c.metrics.count(ctx, callName, typeWebhook, resultGivenUp, 1)
		c.reject(ctx, events.ReasonWebhookFailed)
		log.ErrorContext(ctx, "giving up on the webhook, dead-lettering its event", "err", err)
		return &events.RejectError{Reason: events.ReasonWebhookFailed, Err: err}
	}
	c.metrics.count(ctx, callName, typeWebhook, resultRetried, 1)
	log.WarnContext(ctx, "webhook not called; retrying", "err", err)
	return err
}
