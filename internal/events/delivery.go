package events

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// deadLetterTimeout bounds the publication of a dead letter.
const deadLetterTimeout = 5 * time.Second

// Delivery is an event that was handed to a handler and is finished by Done.
type Delivery struct {
	// Change is what Consume hands over, and Outcome what ConsumeOutcomes does. The other is empty.
	Change  Change
	Outcome Outcome
	Event   event.Event
	// Subject is the one on which the event was published.
	Subject string
	// Seq is its sequence on the stream.
	Seq uint64
	// Deliveries is how often the event was delivered, this time included.
	Deliveries int
	// Header is that of the message. Carrier reads the sender's trace context from it.
	Header nats.Header
	// Received is when the event came in.
	Received time.Time

	bus *Bus
	// stream is the name of the one that it came from.
	stream   string
	msg      jetstream.Msg
	data     []byte
	storedAt time.Time
	pacer    *pacer
	backoff  func(deliveries int) time.Duration
	done     atomic.Bool
}

// parse reads the event and checks that it is one for this cluster: its own, or one about a secret in a store of a cluster
// that watches stores for it.
func (d *Delivery) parse(storesFrom []string) error {
	address, err := ParseSubject(d.Subject)
	if err != nil {
		return err
	}
	shared := address.Kind == KindOpenBao && slices.Contains(storesFrom, address.Cluster)
	if address.Cluster != d.bus.cluster && !shared {
		return rejectf(ReasonForeignCluster, "the event is of cluster %q, want %q", address.Cluster, d.bus.cluster)
	}
	if d.Event, err = FromMsg(d.Subject, d.Header, d.data); err != nil {
		return err
	}
	if d.Change, err = ParseChange(d.Event); err != nil {
		return err
	}
	return Validate(d.Subject, d.Change)
}

// TraceContext gives a context whose remote parent is the span that published the event, or the one that created it where
// the publisher sent none.
func (d *Delivery) TraceContext(ctx context.Context) context.Context {
	carrier := Carrier(d.Header)
	if hop := (TraceContext{Parent: carrier.Get(traceparentKey), State: carrier.Get(tracestateKey)}); hop.valid().Parent != "" {
		return hop.Context(ctx)
	}
	if d.stream == StreamHistory {
		return d.Outcome.Trace.Context(ctx)
	}
	return d.Change.Trace.Context(ctx)
}

// Done says what became of the event. It may be called from any goroutine, also after Consume has returned; only the
// first call counts. It is the one place where an outcome is mapped to what NATS is told:
//
//	nil               acknowledged: it is not delivered again
//	*RetryError       delivered again, after the delay it asks for
//	*RejectError      copied to the dead letters if it is of CHANGES, and not delivered again
//	context.Canceled  delivered again at once, to whoever is there
//	any other         delivered again, after a delay that grows with the number of deliveries
//
// What NATS cannot be told because the connection is down needs no second try: what is not acknowledged is delivered
// again. Done is harmless for an event that was superseded meanwhile.
func (d *Delivery) Done(ctx context.Context, err error) {
	if !d.done.CompareAndSwap(false, true) {
		return
	}
	// From here on the pacer does not touch the message, so its delay is not reset.
	d.pacer.forget(d)
	var retry *RetryError
	var reject *RejectError
	switch {
	case err == nil:
		d.told(ctx, "ack", d.msg.Ack())
	case errors.As(err, &reject):
		d.reject(ctx, reject)
	case errors.As(err, &retry):
		d.told(ctx, "nak", d.msg.NakWithDelay(retry.After))
	case errors.Is(err, context.Canceled):
		d.told(ctx, "nak", d.msg.Nak())
	default:
		d.told(ctx, "nak", d.msg.NakWithDelay(d.backoff(d.Deliveries)))
	}
}

// reject copies the message to the dead letters before it is terminated. Where that fails it is delivered again, so that
// nothing is refused without a trace. StreamHistory keeps the message itself.
func (d *Delivery) reject(ctx context.Context, reject *RejectError) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadLetterTimeout)
	defer cancel()
	var err error
	if d.stream != StreamHistory {
		err = d.bus.bury(bounded, d, reject)
	}
	if err != nil {
		d.bus.logger.WarnContext(ctx, "event could not be made a dead letter", d.attrs("err", err)...)
		d.told(ctx, "nak", d.msg.NakWithDelay(d.backoff(d.Deliveries)))
		return
	}
	d.bus.logger.WarnContext(ctx, "event is refused", d.attrs("reason", reject.Reason, "err", reject.Err)...)
	d.told(ctx, "term", d.msg.TermWithReason(reject.Reason))
}

func (d *Delivery) told(ctx context.Context, what string, err error) {
	if err != nil {
		d.bus.logger.DebugContext(ctx, "event is not acknowledged, will be delivered again", d.attrs("answer", what, "err", err)...)
	}
}

func (d *Delivery) attrs(more ...any) []any {
	return append([]any{"subject", d.Subject, "seq", d.Seq, "deliveries", d.Deliveries}, more...)
}
