package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
)

// headerEvent is the header of a replay request with the id of the event.
const headerEvent = "Keyturn-Event"

// replaySubject returns the subject of replay requests. No kind and no cluster has such a name, so no dead letter is on it.
func replaySubject(cluster string) string { return deadLetterRoot + cluster + "._replay" }

// behindRetries is how often CanReplay asks again if a replica is behind, for about four seconds in total.
const behindRetries = 3

// A replay request that has waited this long, and was delivered this often, accepts the answer of a replica that may be behind. If a leader has
// lost the end of its stream, it looks forever as if the replica were behind. The time alone is not enough: the servers may have been down for
// most of it.
const (
	behindFor        = time.Hour
	behindDeliveries = 10
)

// rejectedEvent identifies the event of a dead letter.
type rejectedEvent struct {
	subject string
	seq     uint64
	// id is the CloudEvents attribute as in the message, or empty if the message has none.
	id string
}

func (l *DeadLetter) event() rejectedEvent {
	return rejectedEvent{subject: l.Subject, seq: l.Seq, id: l.Header.Get(attributePrefix + "id")}
}

// parseRequest decodes a replay request. It returns a RejectError if the request names no event that this version can read.
func parseRequest(header nats.Header) (rejectedEvent, error) {
	subject, err := percentDecode(header.Get(headerSubject))
	if err != nil {
		return rejectedEvent{}, rejectf(ReasonMalformed, "header %s: %w", headerSubject, err)
	}
	if _, err = ParseSubject(subject); err != nil {
		return rejectedEvent{}, err
	}
	id, err := percentDecode(header.Get(headerEvent))
	if err != nil {
		return rejectedEvent{}, rejectf(ReasonMalformed, "header %s: %w", headerEvent, err)
	}
	seq, err := strconv.ParseUint(header.Get(headerSequence), 10, 64)
	if err != nil {
		return rejectedEvent{}, rejectf(ReasonMalformed, "header %s: %w", headerSequence, err)
	}
	return rejectedEvent{subject: subject, seq: seq, id: id}, nil
}

// CanReplay returns nil if the event of the dead letter is still the last one on its subject, and can be read. storesFrom is as in ConsumeOptions.
// Otherwise, the error wraps ErrSuperseded, ErrNotFound or ErrBehind, is a RejectError, or says why the stream could not be read.
func (b *Bus) CanReplay(ctx context.Context, letter DeadLetter, storesFrom []string) error {
	delays := b.retry()
	for attempt := 0; ; attempt++ {
		err := b.load(ctx, &Delivery{Asked: letter.Time}, letter.event(), storesFrom)
		if !errors.Is(err, ErrBehind) || attempt == behindRetries {
			return err
		}
		if !backoff.Sleep(ctx, delays.Step()) {
			return err
		}
	}
}

// Replay requests that the consumers of the cluster's changes handle the event of a dead letter again, provided that it is still the last one on its
// subject by then. It publishes nothing on StreamChanges, because the event is still there. The request waits on StreamDeadLetters until a consumer
// has finished the event.
func (b *Bus) Replay(ctx context.Context, letter DeadLetter) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	event := letter.event()
	request := &nats.Msg{Subject: replaySubject(b.cluster), Header: nats.Header{}}
	request.Header.Set(headerSubject, percentEncode(event.subject))
	request.Header.Set(headerSequence, strconv.FormatUint(event.seq, 10))
	request.Header.Set(headerEvent, percentEncode(event.id))
	request.Header.Set(headerTime, b.now().UTC().Format(time.RFC3339Nano))
	if _, err := b.js.PublishMsg(bounded, request, jetstream.WithExpectStream(StreamDeadLetters)); err != nil {
		return fmt.Errorf("publishing on %s: %w", request.Subject, err)
	}
	return nil
}

// consumeReplays passes the events for which a replay is requested to the handler, until ctx is done.
func (b *Bus) consumeReplays(ctx context.Context, opts ConsumeOptions, handler func(context.Context, *Delivery)) {
	storesFrom := opts.StoresFrom
	opts.FilterSubjects = []string{replaySubject(b.cluster)}
	for ctx.Err() == nil {
		c := b.newConsumption(b.deadLetters, opts, func(ctx context.Context, d *Delivery) {
			if b.replay(ctx, d, storesFrom, opts.OnReject) {
				handler(ctx, d)
			}
		})
		c.parse, c.rejections, c.beside = func(*Delivery) error { return nil }, newRejections(b.deadLetter), true
		err := c.run(ctx)
		if ctx.Err() != nil {
			return
		}
		// A problem with this consumer must not keep changes from being consumed.
		delay := wait.Jitter(b.guardInterval, newConsumerBackoff().Jitter)
		b.logger.WarnContext(ctx, "dead letters are not replayed", "retry_in", delay, "err", err)
		backoff.Sleep(ctx, delay)
	}
}

// replay turns the delivery of a replay request into the delivery of its event, and reports whether the event must be handled. If not, it finishes
// the delivery.
func (b *Bus) replay(ctx context.Context, d *Delivery, storesFrom []string, onReject func(context.Context, string)) bool {
	event, err := parseRequest(d.header)
	if err != nil {
		d.rejections = nil // A dead letter about a request would have no event to replay, either.
		d.Done(ctx, err)
		return false
	}
	d.Replay, d.Asked = d.Seq, d.StoredAt
	err = b.load(ctx, d, event, storesFrom)
	reject, rejected := errors.AsType[*RejectError](err)
	switch {
	case errors.Is(err, ErrSuperseded), errors.Is(err, ErrNotFound):
		b.logger.InfoContext(ctx, "dead letter not replayed", "subject", event.subject, "seq", event.seq, "replay", d.Replay, "err", err)
		d.Done(ctx, nil)
	case rejected:
		onReject(ctx, reject.Reason)
		d.Done(ctx, err)
	case err != nil:
		b.logger.InfoContext(ctx, "dead letter not replayed yet",
			"subject", event.subject, "seq", event.seq, "replay", d.Replay, "deliveries", d.Deliveries, "err", err)
		d.Done(ctx, err)
	default:
		b.logger.InfoContext(ctx, "dead letter taken again", d.attrs()...)
		return true
	}
	return false
}

// load reads the event from StreamChanges into the delivery. d.Asked must be a time at which the event was there. The error wraps ErrSuperseded or
// ErrNotFound if it is no longer there, wraps ErrBehind if that is uncertain, and is a RejectError if the event is unreadable or of another cluster.
func (b *Bus) load(ctx context.Context, d *Delivery, event rejectedEvent, storesFrom []string) error {
	if _, err := ParseSubject(event.subject); err != nil {
		d.subject = event.subject
		return err
	}
	raw, err := b.last(ctx, event.subject)
	missing := errors.Is(err, ErrNotFound) || err == nil && raw.Sequence < event.seq
	if missing && !b.believes(d) {
		if behind := b.answersBehind(ctx, event, d.Asked); behind != nil {
			return behind
		}
	}
	switch {
	case err != nil:
		return err
	case raw.Sequence != event.seq || event.id != "" && raw.Header.Get(attributePrefix+"id") != event.id:
		return fmt.Errorf("reading %s: %w", event.subject, ErrSuperseded)
	}
	d.subject, d.header, d.data, d.Seq, d.StoredAt = raw.Subject, raw.Header, raw.Data, raw.Sequence, raw.Time
	return d.parseChange(b.cluster, storesFrom)
}

// believes reports whether the replay request accepts an answer even if it may come from a replica that is behind.
func (b *Bus) believes(d *Delivery) bool {
	return d.Replay != 0 && d.Deliveries >= behindDeliveries && b.now().Sub(d.Asked) >= behindFor
}

// answersBehind returns an error if the event, which was on StreamChanges at the given time, may still be there although a server returned an earlier
// event or none. Any replica answers a read, even one that is behind. Only the leader answers for the stream.
func (b *Bus) answersBehind(ctx context.Context, event rejectedEvent, at time.Time) error {
	info, err := b.changes.Info(ctx, jetstream.WithSubjectFilter(event.subject))
	switch {
	case err != nil:
		return fmt.Errorf("reading stream %s: %w", StreamChanges, err)
	case info.Created.After(at) || info.State.LastSeq < event.seq || info.State.Subjects[event.subject] == 0:
		return nil
	}
	return fmt.Errorf("reading %s for sequence %d: %w", event.subject, event.seq, ErrBehind)
}

// oneAtATime returns a handler that several goroutines may call. It calls handler for one delivery at a time.
func oneAtATime(handler func(context.Context, *Delivery)) func(context.Context, *Delivery) {
	var mu sync.Mutex
	return func(ctx context.Context, d *Delivery) {
		mu.Lock()
		defer mu.Unlock()
		handler(ctx, d)
	}
}
