package events

import (
	"context"
	"errors"
	"fmt"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DeadLetters returns the newest dead letters of the cluster, at most limit, in the order in which they were rejected.
func (b *Bus) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	var letters []DeadLetter
	err := b.read(ctx, b.deadLetters, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{deadLetterRoot + b.cluster + ".>"},
		DeliverPolicy:  jetstream.DeliverAllPolicy,
	}, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) error {
		letters = append(letters, parseDeadLetter(msg.Headers(), msg.Data()))
		if len(letters) > limit {
			letters = letters[1:]
		}
		return nil
	})
	return letters, err
}

// deadLetter publishes a copy of a rejected event on StreamDeadLetters. Repeated calls for the same event store one copy.
func (b *Bus) deadLetter(ctx context.Context, d *Delivery, reject *RejectError) error {
	letter := DeadLetter{Subject: d.subject, Reason: reject.Reason, Error: reject.Err.Error(), Seq: d.Seq, Time: b.now(), Header: d.header}
	msg := &nats.Msg{Subject: deadLetterSubject(b.cluster, d.subject), Header: letter.headers()}
	if len(d.data) <= MaxEventSize {
		msg.Data = d.data
	}
	id := fmt.Sprintf("%s/%d/%d", b.cluster, d.Seq, d.StoredAt.UnixNano())
	_, err := b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id), jetstream.WithExpectStream(StreamDeadLetters))
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// RejectLast dead-letters the last event at an address, unless it can be read or has been, and returns the reason, or "" if it did not.
func (b *Bus) RejectLast(ctx context.Context, at Address) (reason string, err error) {
	raw, err := b.last(ctx, at.Subject())
	switch {
	case errors.Is(err, ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	_, err = newStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data).lastChange()
	if err == nil {
		return "", nil // A later event has taken its place.
	}
	reject, rejected := errors.AsType[*RejectError](err)
	if !rejected {
		reject = &RejectError{Reason: ReasonMalformed, Err: err}
	}
	hasLetter, err := b.hasDeadLetter(ctx, raw)
	if err != nil || hasLetter {
		return "", err
	}
	d := &Delivery{subject: raw.Subject, header: raw.Header, data: raw.Data, Seq: raw.Sequence, StoredAt: raw.Time}
	return reject.Reason, b.deadLetter(ctx, d, reject)
}

// hasDeadLetter reports whether the last dead letter of a subject is about this message, and not about an earlier one of its sequence.
func (b *Bus) hasDeadLetter(ctx context.Context, raw *jetstream.RawStreamMsg) (found bool, err error) {
	err = b.read(ctx, b.deadLetters, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{deadLetterSubject(b.cluster, raw.Subject)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) error {
		letter := parseDeadLetter(msg.Headers(), nil)
		found = letter.Seq == raw.Sequence && !letter.Time.Before(raw.Time)
		return nil
	})
	return found, err
}
