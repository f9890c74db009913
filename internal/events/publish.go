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

// PublishOutcomes publishes outcomes in their order, all of them on StreamHistory, and then the last of each workload that is
// neither a skip nor a hold on StreamChanges, which keeps no other. It gives an error for each, nil where it was published.
// Those of which the error is no RejectError may be published again, before any later outcome of their workloads: one that
// was published in the last minutes is not stored twice.
//
// They are sent without waiting for each other, so that many take little more time than one.
func (b *Bus) PublishOutcomes(ctx context.Context, outcomes ...Outcome) []error {
	msgs, errs := make([]*nats.Msg, len(outcomes)), make([]error, len(outcomes))
	history := make([]jetstream.PubAckFuture, len(outcomes))
	for i, o := range outcomes {
		if msgs[i], errs[i] = b.outcomeMsg(o); errs[i] == nil {
			history[i], errs[i] = b.send(ctx, StreamHistory, HistorySubject(msgs[i].Subject), msgs[i], o)
		}
	}
	awaitAll(ctx, history, errs)

	state := make([]jetstream.PubAckFuture, len(outcomes))
	last := lastStates(outcomes, msgs, errs)
	for i, msg := range msgs {
		if msg != nil && last[msg.Subject] == i+1 {
			state[i], errs[i] = b.send(ctx, StreamChanges, msg.Subject, msg, outcomes[i])
		}
	}
	awaitAll(ctx, state, errs)
	for i, msg := range msgs {
		if msg == nil {
			continue
		}
		if l := last[msg.Subject]; i+1 < l {
			errs[i] = errs[l-1]
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("publishing on %s: %w", msg.Subject, errs[i])
		}
	}
	return errs
}

// lastStates gives, by subject, which outcome is the state of its workload, counted from 1: what a workload did not do, or not
// yet, is history; its state is what it did last. Where one of a workload is not history yet, all of its outcomes get that error: none of them
// must become the state before it, and they are to be published again together.
func lastStates(outcomes []Outcome, msgs []*nats.Msg, errs []error) map[string]int {
	failed := make(map[string]error)
	for i, msg := range msgs {
		if msg != nil && errs[i] != nil {
			failed[msg.Subject] = errs[i]
		}
	}
	last := make(map[string]int)
	for i, msg := range msgs {
		if msg == nil {
			continue
		}
		if errs[i] = failed[msg.Subject]; errs[i] != nil {
			continue
		}
		if verb := outcomes[i].Verb; verb != VerbSkipped && verb != VerbHeld {
			last[msg.Subject] = i + 1
		}
	}
	return last
}

func (b *Bus) outcomeMsg(o Outcome) (*nats.Msg, error) {
	if o.Cluster != b.cluster {
		return nil, rejectf(ReasonForeignCluster, "the outcome is of cluster %q, want %q", o.Cluster, b.cluster)
	}
	e, err := o.Event()
	if err != nil {
		return nil, err
	}
	return ToMsg(e, OutcomeSubject(b.cluster, o.Workload))
}

// send sends the message of an outcome to a stream. The stream's answer is the future's.
func (b *Bus) send(ctx context.Context, stream, subject string, msg *nats.Msg, o Outcome) (jetstream.PubAckFuture, error) {
	sent := hop(o.Trace.Context(ctx), subject, msg)
	return b.js.PublishMsgAsync(sent, jetstream.WithMsgID(b.messageID(o.ID())), jetstream.WithExpectStream(stream))
}

// awaitAll waits for the answers of what was sent, and puts the errors among them into errs.
func awaitAll(ctx context.Context, sent []jetstream.PubAckFuture, errs []error) {
	for i, answer := range sent {
		if answer == nil {
			continue
		}
		select {
		case <-answer.Ok():
		case errs[i] = <-answer.Err():
		case <-ctx.Done():
			errs[i] = ctx.Err()
		}
	}
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
	options = append([]jetstream.PublishOpt{jetstream.WithMsgID(id), jetstream.WithExpectStream(stream)}, options...)
	return b.js.PublishMsg(ctx, hop(ctx, subject, msg), options...)
}

// hop gives the message as it goes to one subject, with the trace that it is sent in. The header is copied: publishing adds to
// it.
func hop(ctx context.Context, subject string, msg *nats.Msg) *nats.Msg {
	sent := &nats.Msg{Subject: subject, Header: maps.Clone(msg.Header), Data: msg.Data}
	propagation.TraceContext{}.Inject(ctx, Carrier(sent.Header))
	return sent
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
