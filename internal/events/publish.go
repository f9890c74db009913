package events

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/propagation"
)

// PublishChange publishes a change on StreamHistory and then on StreamChanges, and returns its sequence on StreamChanges.
// On StreamChanges it supersedes the event with the expected sequence. Zero means that the subject has no event.
//
// The error wraps ErrConflict if the subject's last event is another one. After any other error, the call may be repeated with
// the same arguments: an event that was stored is recognized, and not stored twice.
func (b *Bus) PublishChange(ctx context.Context, c Change, expected uint64) (uint64, error) {
	if c.Cluster != b.cluster {
		return 0, rejectf(ReasonForeignCluster, "the change is of cluster %q, want %q", c.Cluster, b.cluster)
	}
	e, err := c.Event()
	if err != nil {
		return 0, err
	}
	msg, err := ToMsg(e, Subject(b.cluster, c.Source))
	if err != nil {
		return 0, err
	}
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(expected)}
	if c.Verb == VerbDeleted {
		options = append(options, jetstream.WithMsgTTL(TombstoneTTL))
	}
	id := b.messageID(e.ID())
	if c.Status != nil && c.Status.Expiring {
		// The passing of time alone made it expire. The earlier event about the failure has the same resourceVersion, and so the same id.
		id += "/expiring"
	}
	ack, err := b.publish(ctx, msg, id, c.Source.sharer(), options...)
	if err == nil && ack.Duplicate && ack.Sequence <= expected {
		// The same event was published before and has been superseded since: an object that was reported deleted still exists.
		// The expected sequence is enough to keep it from being stored twice, so it gets a message id of its own.
		ack, err = b.publish(ctx, msg, numberedID(id, expected), c.Source.sharer(), options...)
	}
	for err == nil && ack.Duplicate {
		seq, readErr := b.alreadyStored(ctx, msg)
		if expected != 0 || !errors.Is(readErr, errNotStored) {
			return seq, readErr
		}
		// The stream remembers this id but has lost the event: a purge keeps the ids. The next id is derived from the lost
		// sequence, so that a repeated call uses the same one.
		ack, err = b.publish(ctx, msg, numberedID(id, ack.Sequence), c.Source.sharer(), options...)
	}
	switch {
	case isConflict(err):
		return b.alreadyStored(ctx, msg)
	case err != nil:
		// In most cases, the error says only that no answer came.
		if down := Connected(b.js.Conn()); down != nil {
			err = fmt.Errorf("%w: %w", down, err)
		}
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return ack.Sequence, nil
}

// numberedID returns a message id for an event that is published again.
func numberedID(id string, seq uint64) string { return id + "@" + strconv.FormatUint(seq, 10) }

// messageID returns the id by which streams detect duplicates. It includes the cluster, because a stream may source several
// clusters.
func (b *Bus) messageID(eventID string) string { return b.cluster + "/" + eventID }

// publish stores the message on both streams, HISTORY first: see docs/adr/0002-history-is-written-first.md. The options apply
// to CHANGES only. A duplicate on HISTORY needs no second try: the id names a state of an object, and HISTORY already has the event about it.
// HISTORY keeps an event that exceeds the share of its namespace or mount for a short time only, or not at all.
func (b *Bus) publish(
	ctx context.Context, msg *nats.Msg, id, sharer string, options ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if taken, ok := b.share.take(ctx, sharer, msg.Size()); ok {
		ack, err := b.store(ctx, StreamHistory, HistorySubject(msg.Subject), msg, id, forSoLong(taken.ttl)...)
		if err != nil || ack.Duplicate {
			taken.giveBack()
		}
		if err != nil {
			return nil, err
		}
	}
	return b.store(ctx, StreamChanges, msg.Subject, msg, id, options...)
}

func (b *Bus) store(
	ctx context.Context, stream, subject string, msg *nats.Msg, id string, options ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	options = append([]jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectStream(stream)}, options...)
	ack, err := b.js.PublishMsg(ctx, hop(ctx, subject, msg), options...)
	b.refusals.note(ctx, b.logger, stream, err)
	return ack, err
}

// hop returns the message for one subject, with the trace context of the publishing span. It copies the header, because
// publishing adds to it.
func hop(ctx context.Context, subject string, msg *nats.Msg) *nats.Msg {
	sent := &nats.Msg{Subject: subject, Header: maps.Clone(msg.Header), Data: msg.Data}
	propagation.TraceContext{}.Inject(ctx, carrier(sent.Header))
	return sent
}

// alreadyStored returns the sequence of the message if it is stored and only its acknowledgement was lost. Otherwise it returns
// an error that wraps errNotStored if the subject has no message, and ErrConflict if it has another one.
func (b *Bus) alreadyStored(ctx context.Context, msg *nats.Msg) (uint64, error) {
	raw, err := b.changes.GetLastMsgForSubject(ctx, msg.Subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, errNotStored)
	case err != nil:
		return 0, fmt.Errorf("reading %s: %w", msg.Subject, err)
	case !sameEvent(msg, raw):
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, ErrConflict)
	}
	return raw.Sequence, nil
}

// sameEvent reports whether the stored message is the event that was to be published, which means that it has the same data and
// attributes, including the time and the trace. Another watcher's event about the same object differs in these two.
func sameEvent(msg *nats.Msg, raw *jetstream.RawStreamMsg) bool {
	var stored int
	for key, values := range raw.Header {
		if !strings.HasPrefix(key, attributePrefix) {
			continue
		}
		stored++
		if len(values) != 1 || len(msg.Header[key]) != 1 || values[0] != msg.Header[key][0] {
			return false
		}
	}
	return stored == len(msg.Header) && bytes.Equal(raw.Data, msg.Data)
}

// isConflict reports whether the stream answered that the subject has another last sequence, or that it is storing a message with this id.
func isConflict(err error) bool {
	var answer *jetstream.APIError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, errCodeDuplicateInProcess:
		return true
	}
	return false
}

// errCodeDuplicateInProcess is the server's JSStreamDuplicateMessageConflict: it is storing a message with the same id.
const errCodeDuplicateInProcess jetstream.ErrorCode = 10158
