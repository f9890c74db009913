package bus

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

	"github.com/keyturn/keyturn/internal/events"
)

// PublishChange publishes a change on both streams at once, waits for both answers, and returns its sequence on StreamChanges.
// On StreamChanges it supersedes the event with the expected sequence. Zero means that the subject has no event. A change that StreamHistory alone
// does not take counts as published, and is stored there before the next one of its source.
//
// The error wraps ErrConflict if the subject's last event is another one. After any other error, the call may be repeated with
// the same arguments: an event that was stored is recognized, and not stored twice.
func (b *Bus) PublishChange(ctx context.Context, c events.Change, expected uint64) (uint64, error) {
	msg, id, err := b.message(c.Encode)
	if err != nil {
		return 0, err
	}
	if c.Status != nil && c.Status.Expiring {
		// It has expired only because of the time. The earlier event about the failure has the same resourceVersion, and so the same id.
		id += "/expiring"
	}
	if c.Verb == events.VerbDeleted {
		return b.supersede(ctx, msg, id, c.Source.Sharer(), expected, jetstream.WithMsgTTL(events.TombstoneTTL))
	}
	return b.supersede(ctx, msg, id, c.Source.Sharer(), expected)
}

// PublishProjection publishes a projection on StreamHistory. Unless the error is a RejectError, it may be called again with the same projection. If
// repeated within minutes, the projection is not stored twice.
func (b *Bus) PublishProjection(ctx context.Context, p events.Projection) error {
	msg, id, err := b.message(p.Encode)
	if err != nil {
		return err
	}
	// Both parts of the id are public: the resource has its UID, and the change is on CHANGES.
	if err := b.record(ctx, msg, b.secrets.messageID(id), p.Target.Namespace); err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// message returns the message of an event of the cluster, and the id by which streams, which may source several clusters, detect duplicates.
func (b *Bus) message(encode func() (events.Stored, error)) (msg *nats.Msg, id string, err error) {
	encoded, err := encode()
	if err != nil {
		return nil, "", err
	}
	if cluster := events.ClusterOf(encoded.Subject); cluster != b.cluster {
		return nil, "", events.Rejectf(events.ReasonForeignCluster, "the event is of cluster %q, want %q", cluster, b.cluster)
	}
	msg, err = messageOf(encoded)
	return msg, b.cluster + "/" + encoded.ID(), err
}

// messageOf returns the message of an event, with the errors of Stored.Message.
func messageOf(e events.Stored) (*nats.Msg, error) {
	header, data, err := e.Message()
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: e.Subject, Header: header, Data: data}, nil
}

// supersede publishes a message on both streams, replacing the one with the expected sequence: see PublishChange.
func (b *Bus) supersede(ctx context.Context, msg *nats.Msg, id, sharer string, expected uint64, options ...jetstream.PublishOpt) (uint64, error) {
	options = append(options, jetstream.WithExpectLastSequencePerSubject(expected))
	ack, err := b.publish(ctx, msg, id, sharer, options...)
	if err == nil && ack.Duplicate && ack.Sequence <= expected {
		// The same event was published before and has been superseded since: an object that was reported deleted still exists, or two clusters take a
		// name from each other. The expected sequence prevents a second copy, so the event gets an id of its own.
		ack, err = b.publish(ctx, msg, numberedID(id, expected), sharer, options...)
	}
	for err == nil && ack.Duplicate {
		seq, readErr := b.alreadyStored(ctx, msg)
		if expected != 0 || !errors.Is(readErr, errNotStored) {
			return seq, readErr
		}
		// The stream has lost the event but remembers its id, as after a purge. A repeated call derives the same next id from its sequence.
		ack, err = b.publish(ctx, msg, numberedID(id, ack.Sequence), sharer, options...)
	}
	switch {
	case isConflict(err):
		return b.alreadyStored(ctx, msg)
	case err != nil:
		// In most cases, the error only says that there was no response.
		if down := Connected(b.js.Conn()); down != nil {
			err = fmt.Errorf("%w: %w", down, err)
		}
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return ack.Sequence, nil
}

// numberedID returns a message id for an event that is published again.
func numberedID(id string, seq uint64) string { return id + "@" + strconv.FormatUint(seq, 10) }

// publish sends the message to HISTORY and CHANGES, and returns the answer of CHANGES: see docs/adr/0056-changes-go-to-both-streams.md. The options
// apply to CHANGES only. A duplicate on HISTORY needs no second try: the id names a state of an object, and HISTORY already has the event about it.
func (b *Bus) publish(ctx context.Context, msg *nats.Msg, id, sharer string, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	isBehind, err := b.settle(ctx, msg.Subject)
	if err != nil {
		return nil, err
	}
	if isBehind {
		if err := b.record(ctx, msg, id, sharer); err != nil {
			return nil, err
		}
		return b.store(ctx, msg, id, options...)
	}
	r := b.beginRecording(ctx, msg, id, sharer)
	ack, err := b.store(ctx, msg, id, options...)
	// In case of a conflict, another watcher is storing it there.
	if late := b.recorded(ctx, r); late != nil && !isConflict(late) && !errors.Is(err, ErrTooLarge) {
		b.owe(ctx, r, late)
	}
	return ack, err
}

// store sends the message to CHANGES, and returns the answer.
func (b *Bus) store(ctx context.Context, msg *nats.Msg, id string, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	options = append([]jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectStream(events.StreamChanges)}, options...)
	ack, err := b.js.PublishMsg(ctx, hop(ctx, msg.Subject, msg), options...)
	return ack, b.explain(ctx, events.StreamChanges, msg, err)
}

// explain returns the error of a stream about a message. It adds the sizes if the message is too large, and logs if the stream is full.
func (b *Bus) explain(ctx context.Context, stream string, msg *nats.Msg, err error) error {
	b.reportFull(ctx, stream, err)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: it has %d bytes, and the max_payload of the nats server is %d", ErrTooLarge, msg.Size(), b.js.Conn().MaxPayload())
	case hasCode(err, jetstream.JSErrCodeStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: it has %d bytes, more than the max_msg_size of %s: %w", ErrTooLarge, msg.Size(), stream, err)
	}
	return err
}

// addedKeys is the maximum number of keys that publishing adds to a header: the trace context, and instructions for the stream.
const addedKeys = 6

// hop returns the message for one subject, with the trace context of the publishing span. It copies the header, because publishing adds to it.
func hop(ctx context.Context, subject string, msg *nats.Msg) *nats.Msg {
	sent := &nats.Msg{Subject: subject, Header: make(nats.Header, len(msg.Header)+addedKeys), Data: msg.Data}
	maps.Copy(sent.Header, msg.Header)
	propagation.TraceContext{}.Inject(ctx, events.Carrier(sent.Header))
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
		if !strings.HasPrefix(key, events.AttributePrefix) {
			continue
		}
		stored++
		if len(values) != 1 || len(msg.Header[key]) != 1 || values[0] != msg.Header[key][0] {
			return false
		}
	}
	return stored == len(msg.Header) && bytes.Equal(raw.Data, msg.Data)
}

// reportFull logs that a stream has no storage for a message, if this is the error.
func (b *Bus) reportFull(ctx context.Context, stream string, err error) {
	if isStorage(err) && b.told.Due(stream, b.now()) {
		b.logger.ErrorContext(ctx, "nats has no storage left, publishing waits: enlarge its volume or raise its limit", "stream", stream, "err", err)
	}
}
