package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// publication is an outcome on its way to the streams.
type publication struct {
	outcome events.Outcome
	msg     *nats.Msg              // nil if the outcome cannot be encoded
	history *recording             // nil like msg
	state   *publication           // the publication of the same workload that becomes its state on StreamChanges: this one, a later one, or nil
	answer  jetstream.PubAckFuture // of StreamChanges; nil if nothing was sent there
	err     error
}

// PublishOutcomes publishes the outcomes, in their order, on StreamHistory. Then it publishes the last state of each workload on StreamChanges, which
// keeps only that one, for 30 days or, if its namespace is beyond its share of StreamHistory, for less: every former name of a workload leaves one.
// Outcome.IsState says which outcomes are states.
//
// It returns one error for each outcome, which is nil if the outcome was published. An outcome may be published again unless its
// error is a RejectError, but only before any later outcome of its workload. If repeated within minutes, it is not stored twice.
//
// The messages are pipelined: many outcomes take little longer than one.
func (b *Bus) PublishOutcomes(ctx context.Context, outcomes ...events.Outcome) []error {
	batch := make([]publication, len(outcomes))
	for i, o := range outcomes {
		p := &batch[i]
		p.outcome = o
		var id string
		if p.msg, id, p.err = b.message(o.Encode); p.err == nil {
			// Both parts of the id are in the outcome about the start of the rollout.
			p.history = b.beginRecording(o.Trace.Context(ctx), p.msg, b.secrets.messageID(id), o.Workload.Namespace)
		}
	}
	for i := range batch {
		if p := &batch[i]; p.history != nil {
			p.err = b.recorded(ctx, p.history)
		}
	}

	chooseStates(batch)
	for i := range batch {
		if p := &batch[i]; p.state == p {
			var err error
			p.answer, err = b.js.PublishMsgAsync(hop(p.outcome.Trace.Context(ctx), p.msg.Subject, p.msg),
				jetstream.WithMsgID(p.history.id), jetstream.WithExpectStream(events.StreamChanges), jetstream.WithMsgTTL(stateTTL(p.history)))
			p.err = b.explain(ctx, events.StreamChanges, p.msg, err)
		}
	}
	for i := range batch {
		if p := &batch[i]; p.answer != nil {
			_, err := await(ctx, p.answer)
			p.err = b.explain(ctx, events.StreamChanges, p.msg, err)
		}
	}

	errs := make([]error, len(batch))
	for i, p := range batch {
		err := p.err
		if p.state != nil {
			err = p.state.err
		}
		if err != nil && p.msg != nil {
			err = fmt.Errorf("publishing on %s: %w", p.msg.Subject, err)
		}
		errs[i] = err
	}
	return errs
}

// stateTTL returns how long StreamChanges keeps an outcome, given its recording, which has not failed.
func stateTTL(history *recording) time.Duration {
	switch {
	case history.answer == nil: // It has no room there.
		return events.FullOutcomeTTL
	case history.taken.ttl != 0:
		return events.CrowdedOutcomeTTL
	}
	return retention
}

// await returns the answer of a stream, or the error of ctx if that ends first.
func await(ctx context.Context, answer jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	select {
	case ack := <-answer.Ok():
		return ack, nil
	case err := <-answer.Err():
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// chooseStates sets the state of each publication whose workload has all of its outcomes on StreamHistory. If one is missing there, all outcomes of
// the workload get its error: they must be published again together, and none may become the state meanwhile.
func chooseStates(batch []publication) {
	failed := make(map[string]error)
	for _, p := range batch {
		if p.msg != nil && p.err != nil {
			failed[p.msg.Subject] = p.err
		}
	}
	states := make(map[string]*publication)
	for i := len(batch) - 1; i >= 0; i-- {
		p := &batch[i]
		if p.msg == nil {
			continue
		}
		subject := p.msg.Subject
		if p.err = failed[subject]; p.err != nil {
			continue
		}
		if states[subject] == nil && p.outcome.IsState() {
			states[subject] = p
		}
		p.state = states[subject]
	}
}
