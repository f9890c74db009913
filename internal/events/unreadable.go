package events

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// RejectLast dead-letters the last event at an address, unless it can be read, or a dead letter of it is the last one of its subject. It returns the
// reason, which is empty if it did neither.
func (b *Bus) RejectLast(ctx context.Context, at Address) (reason string, err error) {
	raw, err := b.last(ctx, at.subject())
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
	isKnown, err := b.hasDeadLetter(ctx, raw)
	if err != nil || isKnown {
		return "", err
	}
	d := &Delivery{subject: raw.Subject, header: raw.Header, data: raw.Data, Seq: raw.Sequence, StoredAt: raw.Time}
	return reject.Reason, b.deadLetter(ctx, d, reject)
}

// hasDeadLetter reports whether the last dead letter of a subject is about this message. A stream that was created again uses the same sequences for
// others.
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
