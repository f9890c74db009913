package events

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// deadLetterTimeout bounds the publication of a dead letter.
const deadLetterTimeout = 5 * time.Second

// Delivery is one delivery of an event to a handler. It is in flight until the handler calls Done.
type Delivery struct {
	// Change is the event that Consume delivers. It is empty in a delivery of ConsumeOutcomes.
	Change Change
	// Outcome is the event that ConsumeOutcomes delivers. It is empty in a delivery of Consume.
	Outcome Outcome
	// Seq is the event's sequence on its stream.
	Seq uint64
	// StoredAt is when the stream stored the event. Seq alone does not identify an event: a stream that was lost and created again
	// starts over at sequence 1.
	StoredAt time.Time
	// Deliveries counts the deliveries of this event, including this one.
	Deliveries int

	subject string
	header  nats.Header
	data    []byte

	// msg is nil if no consumer waits for an answer to the delivery.
	msg       jetstream.Msg
	heartbeat *heartbeat
	backoff   func(deliveries int) time.Duration
	// rejections publishes a copy of a rejected event. It is nil if no copy is needed, because the stream keeps the event itself or
	// the actuator makes the copy.
	rejections *rejections
	logger     *slog.Logger
	done       atomic.Bool
}

// Expires returns when the stream drops the event, or zero if the event has no TTL of its own.
func (d *Delivery) Expires() time.Time {
	ttl, err := time.ParseDuration(d.header.Get(jetstream.MsgTTLHeader))
	if err != nil || ttl <= 0 {
		return time.Time{}
	}
	return d.StoredAt.Add(ttl)
}

// TraceContext returns a context whose remote parent is the span that published the event or, if the publisher sent none, the
// span that created the event.
func (d *Delivery) TraceContext(ctx context.Context) context.Context {
	c := carrier(d.header)
	if hop := (TraceContext{Parent: c.Get(traceparentKey), State: c.Get(tracestateKey)}).Valid(); hop.Parent != "" {
		return hop.Context(ctx)
	}
	if d.Outcome.Cluster != "" {
		return d.Outcome.Trace.Context(ctx)
	}
	return d.Change.Trace.Context(ctx)
}

// Done finishes the delivery. What happens to the event depends on err alone, and is decided nowhere else:
//
//	nil               acknowledged
//	*RejectError      copied to StreamDeadLetters if it was on StreamChanges, and terminated: never redelivered
//	context.Canceled  redelivered at once, to any consumer
//	ErrRedelivered    not answered: a later delivery of the event is
//	any other error   redelivered after a delay that grows with the number of deliveries
//
// Done may be called from any goroutine, even after Consume has returned. Only the first call counts. It does not wait for
// NATS and returns no error: if NATS does not receive the answer, the event is redelivered. Calling it is harmless if the event
// has been superseded in the meantime.
func (d *Delivery) Done(ctx context.Context, err error) {
	if !d.done.CompareAndSwap(false, true) {
		return
	}
	var reject *RejectError
	switch {
	case d.msg == nil: // No consumer waits for an answer.
	case errors.Is(err, ErrRedelivered):
		d.heartbeat.remove(d.msg)
	case err == nil:
		d.heartbeat.remove(d.msg)
		d.logLost(ctx, "ack", d.msg.Ack())
	case errors.As(err, &reject):
		d.reject(ctx, reject)
	case errors.Is(err, context.Canceled):
		d.nak(ctx)
	default:
		d.nakLater(ctx)
	}
}

// reject hands the event to rejections, which finishes it. The event stays in flight until then.
func (d *Delivery) reject(ctx context.Context, reject *RejectError) {
	if d.rejections == nil {
		d.terminate(ctx, reject)
		return
	}
	if !d.rejections.add(rejection{delivery: d, reject: reject}) {
		d.nakLater(ctx)
	}
}

// terminate tells the server never to redeliver the event.
func (d *Delivery) terminate(ctx context.Context, reject *RejectError) {
	d.logger.WarnContext(ctx, "event rejected", d.attrs("reason", reject.Reason, "err", reject.Err)...)
	d.heartbeat.remove(d.msg)
	d.logLost(ctx, "term", d.msg.TermWithReason(reject.Reason))
}

func (d *Delivery) nak(ctx context.Context) {
	d.heartbeat.remove(d.msg)
	d.logLost(ctx, "nak", d.msg.Nak())
}

// nakLater naks the event with the delay of the backoff. It removes the heartbeat first, because a heartbeat after the nak would cancel the delay.
func (d *Delivery) nakLater(ctx context.Context) {
	d.heartbeat.remove(d.msg)
	d.logLost(ctx, "nak", d.msg.NakWithDelay(d.backoff(d.Deliveries)))
}

// logLost logs that the server did not receive the answer to the delivery.
func (d *Delivery) logLost(ctx context.Context, answer string, err error) {
	if err != nil {
		d.logger.DebugContext(ctx, "answer not sent, event will be redelivered", d.attrs("answer", answer, "err", err)...)
	}
}

func (d *Delivery) attrs(more ...any) []any {
	return append([]any{"subject", d.subject, "seq", d.Seq, "deliveries", d.Deliveries}, more...)
}
