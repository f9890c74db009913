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

// PublishChange publishes a change, first on StreamHistory, then on StreamChanges, where it supersedes the event with the
// sequence expected on its subject; zero means that there is none. It gives the sequence of the event on StreamChanges.
//
// It returns ErrConflict when the subject's last event is another one. It may be called again with the same arguments
// when the outcome is not known: an event that is there already is found to be, and is not stored twice.
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
	ack, err := b.publish(ctx, msg, id, options...)
	if err == nil && ack.Duplicate && ack.Sequence <= expected {
		// The id is known from before the event that this one supersedes: it says again what was superseded since. An
		// object that was reported gone and is there after all does so. The expectation is what keeps it from being stored
		// twice, so it may have an id of its own.
		ack, err = b.publish(ctx, msg, id+"@"+strconv.FormatUint(expected, 10), options...)
	}
	switch {
	case isConflict(err), err == nil && ack.Duplicate:
		return b.alreadyStored(ctx, msg)
	case err != nil:
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return ack.Sequence, nil
}

// PublishOutcome publishes an outcome, first on StreamHistory, then, unless it is a skip or a hold, on StreamChanges. An
// outcome that was published in the last minutes is not stored twice.
func (b *Bus) PublishOutcome(ctx context.Context, o Outcome) error {
	if o.Cluster != b.cluster {
		return rejectf(ReasonForeignCluster, "the outcome is of cluster %q, want %q", o.Cluster, b.cluster)
	}
	e, err := o.Event()
	if err != nil {
		return err
	}
	msg, err := ToMsg(e, OutcomeSubject(b.cluster, o.Workload))
	if err != nil {
		return err
	}
	if o.Verb == VerbSkipped || o.Verb == VerbHeld {
		// What a workload did not do, or not yet, is history; its state is what it did last.
		_, err = b.store(ctx, StreamHistory, HistorySubject(msg.Subject), msg, b.messageID(e.ID()))
	} else {
		_, err = b.publish(ctx, msg, b.messageID(e.ID()))
	}
	if err != nil {
		return fmt.Errorf("publishing on %s: %w", msg.Subject, err)
	}
	return nil
}

// messageID is the id by which the streams know a message again. A stream that sources several clusters does so too,
// which is why the cluster is part of it.
func (b *Bus) messageID(eventID string) string { return b.cluster + "/" + eventID }

// publish stores the message on both streams. HISTORY is first: see docs/adr/0002-history-is-written-first.md. The options
// are for CHANGES only.
func (b *Bus) publish(ctx context.Context, msg *nats.Msg, id string, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if _, err := b.store(ctx, StreamHistory, HistorySubject(msg.Subject), msg, id); err != nil {
		return nil, err
	}
	return b.store(ctx, StreamChanges, msg.Subject, msg, id, options...)
}

func (b *Bus) store(ctx context.Context, stream, subject string, msg *nats.Msg, id string, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	// The header is copied: publishing adds to it.
	sent := &nats.Msg{Subject: subject, Header: maps.Clone(msg.Header), Data: msg.Data}
	propagation.TraceContext{}.Inject(ctx, Carrier(sent.Header))
	options = append([]jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectStream(stream)}, options...)
	return b.js.PublishMsg(ctx, sent, options...)
}

// alreadyStored decides between a conflict and an event of ours whose acknowledgement was lost.
func (b *Bus) alreadyStored(ctx context.Context, msg *nats.Msg) (uint64, error) {
	raw, err := b.changes.GetLastMsgForSubject(ctx, msg.Subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, ErrConflict)
	case err != nil:
		return 0, fmt.Errorf("reading %s: %w", msg.Subject, err)
	case !sameEvent(msg, raw):
		return 0, fmt.Errorf("publishing on %s: %w", msg.Subject, ErrConflict)
	}
	return raw.Sequence, nil
}

// sameEvent tells whether the stored message is the event that was to be published: the same attributes, with the time
// and the trace it was created in, and the same data. An event of another watcher about the same object is not.
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

// isConflict tells the answers of a stream whose subject is not where it was expected to be, or is just being written.
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

// errCodeDuplicateInProcess is the server's JSStreamDuplicateMessageConflict: a message with the same id is being stored.
const errCodeDuplicateInProcess jetstream.ErrorCode = 10158
