package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// DeadLetters returns the newest dead letters of the cluster, at most limit, in the order in which they were rejected.
func (b *Bus) DeadLetters(ctx context.Context, limit int) ([]events.DeadLetter, error) {
	var letters []events.DeadLetter
	err := b.read(ctx, b.deadLetters, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{events.DeadLetterRoot + b.cluster + ".>"},
		DeliverPolicy:  jetstream.DeliverAllPolicy,
	}, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) error {
		letters = append(letters, events.ParseDeadLetter(msg.Headers()))
		if len(letters) > limit {
			letters = letters[1:]
		}
		return nil
	})
	return letters, err
}

// RejectLast dead-letters the last event at an address, unless it is readable or was dead-lettered, and returns the reason, or "" if it did not.
func (b *Bus) RejectLast(ctx context.Context, at events.Address) (reason string, err error) {
	raw, err := b.last(ctx, at.Subject())
	switch {
	case errors.Is(err, events.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	_, err = events.NewStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data).LastChange()
	if err == nil {
		return "", nil // A later event has replaced it.
	}
	reject, rejected := errors.AsType[*events.RejectError](err)
	if !rejected {
		reject = &events.RejectError{Reason: events.ReasonMalformed, Err: err}
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
		FilterSubjects: []string{events.DeadLetterSubject(b.cluster, raw.Subject)}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, _ *jetstream.MsgMetadata) error {
		letter := events.ParseDeadLetter(msg.Headers())
		found = letter.Seq == raw.Sequence && !letter.Time.Before(raw.Time)
		return nil
	})
	return found, err
}
