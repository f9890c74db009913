package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// deadLetterTimeout bounds the publication of a dead letter, and deadLetterPause is the pause after a failure: all other events wait.
const deadLetterTimeout, deadLetterPause = 5 * time.Second, 30 * time.Second

// Delivery is one delivery of an event to a handler. It is in flight until the handler calls Done.
type Delivery struct {
	Change  events.Change  // the event that Consume delivers; empty in a delivery of ConsumeOutcomes
	Outcome events.Outcome // the event that ConsumeOutcomes delivers; empty in a delivery of Consume
	Seq     uint64         // the event's sequence on its stream
	// StoredAt is when the stream stored the event. A stream that was lost and created again starts over at sequence 1.
	StoredAt   time.Time
	Deliveries int // counts the deliveries of this event, including this one

	subject string
	header  nats.Header
	data    []byte

	consumption *consumption // delivers the event in msg; nil if no consumer waits for an acknowledgement
	msg         jetstream.Msg
	done        atomic.Bool
}

// Expires returns when the stream drops the event, or zero if the event has no TTL of its own.
func (d *Delivery) Expires() time.Time {
	ttl, err := time.ParseDuration(d.header.Get(jetstream.MsgTTLHeader))
	if err != nil || ttl <= 0 {
		return time.Time{}
	}
	return d.StoredAt.Add(ttl)
}

// TraceContext returns a context whose remote parent is the span that published the event or, if it is unknown, that created it.
func (d *Delivery) TraceContext(ctx context.Context) context.Context {
	c := events.Carrier(d.header)
	if hop := (events.TraceContext{Parent: c.Get(events.TraceparentKey), State: c.Get(events.TracestateKey)}).Valid(); hop.Parent != "" {
		return hop.Context(ctx)
	}
	if d.Outcome.Cluster != "" {
		return d.Outcome.Trace.Context(ctx)
	}
	return d.Change.Trace.Context(ctx)
}

// StartProcess is Change.StartProcess for the processing by a consumer.
func (d *Delivery) StartProcess(ctx context.Context, tracer trace.Tracer, consumer string) trace.Span {
	span := d.Change.StartProcess(ctx, tracer, d.Seq)
	if d.Change.ChangedAt == "" || !span.IsRecording() {
		return span
	}
	span.SetAttributes(semconv.MessagingConsumerGroupName(consumer), attribute.Int64("keyturn.delivery", int64(d.Deliveries)))
	return span
}

// Done finishes the delivery. What happens to the event depends on err alone, and is decided nowhere else:
//
//	nil               acknowledged
//	*RejectError      copied to StreamDeadLetters if it was on StreamChanges, and terminated: never redelivered
//	context.Canceled  redelivered at once, to any consumer
//	ErrRedelivered    not answered: a later delivery of the event is
//	any other error   redelivered after a delay that grows with the number of deliveries
//
// Done may be called from any goroutine, even after Consume has returned. Only the first call counts. It waits for a dead letter, for 5 seconds at
// most. If NATS does not receive the answer, the event is redelivered. For an event that has been superseded since, the call has no effect.
func (d *Delivery) Done(ctx context.Context, err error) {
	if !d.done.CompareAndSwap(false, true) || d.msg == nil {
		return
	}
	reject, isRejected := errors.AsType[*events.RejectError](err)
	if isRejected {
		ctx = d.TraceContext(ctx)
		if !d.isBuried(ctx, reject) {
			err, isRejected = errUnburied, false
		}
	}
	// No heartbeat may follow the answer: it would cancel the delay of a nak.
	d.consumption.heartbeat.remove(d.msg)
	logger, answer, lost := d.consumption.bus.logger, "ack", error(nil)
	switch {
	case errors.Is(err, ErrRedelivered):
	case err == nil:
		lost = d.msg.Ack()
	case isRejected:
		logger.WarnContext(ctx, "event rejected", d.attrs("reason", reject.Reason, "err", reject.Err)...)
		answer, lost = "term", d.msg.TermWithReason(reject.Reason)
	case errors.Is(err, context.Canceled):
		answer, lost = "nak", d.msg.Nak()
	default:
		answer, lost = "nak", d.msg.NakWithDelay(d.consumption.opts.Backoff(d.Deliveries))
	}
	if lost != nil {
		logger.DebugContext(ctx, "answer not sent, event will be redelivered", d.attrs("answer", answer, "err", lost)...)
	}
}

// errUnburied is the error of a rejected event whose dead letter was not published: no event is rejected without a trace.
var errUnburied = errors.New("the dead letter was not published")

// isBuried publishes the dead letter of the event, unless none is needed, and reports whether that succeeded.
func (d *Delivery) isBuried(ctx context.Context, reject *events.RejectError) bool {
	if d.consumption.opts.WithoutDeadLetters {
		return true
	}
	if d.consumption.bus.now().UnixNano() < d.consumption.buries.Load() {
		return false
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadLetterTimeout)
	defer cancel()
	err := d.consumption.bus.deadLetter(bounded, d, reject)
	if err != nil {
		d.consumption.buries.Store(d.consumption.bus.now().Add(deadLetterPause).UnixNano())
		d.consumption.bus.logger.WarnContext(ctx, "dead letter not published, event will be redelivered", d.attrs("err", err)...)
	}
	return err == nil
}

// deadLetter publishes a copy of a rejected event on StreamDeadLetters. Repeated calls for the same event store one copy.
func (b *Bus) deadLetter(ctx context.Context, d *Delivery, reject *events.RejectError) error {
	letter := events.DeadLetter{Subject: d.subject, Reason: reject.Reason, Error: reject.Err.Error(), Seq: d.Seq, Time: b.now()}
	msg := &nats.Msg{Subject: events.DeadLetterSubject(b.cluster, d.subject), Header: letter.Headers(d.header)}
	if len(d.data) <= events.MaxEventSize {
		msg.Data = d.data
	}
	id := fmt.Sprintf("%s/%d/%d", b.cluster, d.Seq, d.StoredAt.UnixNano())
	_, err := b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithExpectStream(events.StreamDeadLetters))
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

func (d *Delivery) attrs(more ...any) []any {
	return append([]any{"subject", d.subject, "seq", d.Seq, "deliveries", d.Deliveries}, more...)
}

// heartbeat extends the ack wait of the in-flight messages of a consumer.
type heartbeat struct {
	mu       sync.Mutex
	inFlight map[jetstream.Msg]struct{}
}

func (h *heartbeat) add(msg jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight[msg] = struct{}{}
}

// remove stops the heartbeat of the message. Nothing is sent for it after remove returns.
func (h *heartbeat) remove(msg jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inFlight, msg)
}

func (h *heartbeat) run(ctx context.Context, interval time.Duration) {
	for kube.Sleep(ctx, interval) {
		h.beat()
	}
}

func (h *heartbeat) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for msg := range h.inFlight {
		// A heartbeat that is lost costs at most a redelivery.
		_ = msg.InProgress()
	}
}
