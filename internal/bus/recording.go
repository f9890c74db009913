package bus

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// recording is an event on its way to StreamHistory.
type recording struct {
	msg        *nats.Msg
	id, sharer string
	taken      room
	answer     jetstream.PubAckFuture // nil if nothing was sent
	err        error                  // why nothing was sent; nil if the event has no room
}

// record stores the message on HISTORY. An event beyond the share of its namespace or mount stays for a short time, or is not stored.
func (b *Bus) record(ctx context.Context, msg *nats.Msg, id, sharer string) error {
	return b.recorded(ctx, b.beginRecording(ctx, msg, id, sharer))
}

// beginRecording sends what record stores. recorded must follow.
func (b *Bus) beginRecording(ctx context.Context, msg *nats.Msg, id, sharer string) *recording {
	r := &recording{msg: msg, id: id, sharer: sharer}
	taken, ok := b.share.take(ctx, sharer, msg.Size())
	if !ok {
		return r
	}
	r.taken = taken
	r.answer, r.err = b.js.PublishMsgAsync(hop(ctx, events.HistorySubject(msg.Subject), msg),
		jetstream.WithMsgID(id), jetstream.WithExpectStream(events.StreamHistory), jetstream.WithMsgTTL(taken.ttl))
	return r
}

// recorded waits for the answer to a recording.
func (b *Bus) recorded(ctx context.Context, r *recording) error {
	ack, err := &jetstream.PubAck{}, r.err
	if r.answer != nil {
		ack, err = await(ctx, r.answer)
	}
	if err != nil || ack.Duplicate {
		b.share.giveBack(r.taken)
	}
	return b.explain(ctx, events.StreamHistory, r.msg, err)
}

// owe keeps a change that CHANGES may have and HISTORY may lack, until settle stores it there.
func (b *Bus) owe(ctx context.Context, r *recording, err error) {
	b.logger.WarnContext(ctx, "the history may lack a change, which is stored there later", "subject", r.msg.Subject, "err", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owed[r.msg.Subject] = r
}

// settle stores on HISTORY what is owed of a subject, whose events are in order there. It reports whether anything is owed of another one. While it
// is, HISTORY comes first: so no more is ever owed than was in flight when HISTORY began to fail. It gives up what is too large for HISTORY: later
// changes of the source would wait for ever.
func (b *Bus) settle(ctx context.Context, subject string) (isBehind bool, err error) {
	b.mu.Lock()
	late := b.owed[subject]
	b.mu.Unlock()
	if late != nil {
		switch err := b.record(ctx, late.msg, late.id, late.sharer); {
		case errors.Is(err, ErrTooLarge):
			b.logger.ErrorContext(ctx, "the history does not take a change", "subject", subject, "err", err)
		case err != nil:
			return true, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owed[subject] == late { // Otherwise somebody else has settled it, and a later change is owed.
		delete(b.owed, subject)
	}
	return len(b.owed) > 0, nil
}

// settleAll settles what no later event of its source may come for.
func (b *Bus) settleAll(ctx context.Context) {
	b.mu.Lock()
	subjects := slices.Collect(maps.Keys(b.owed))
	b.mu.Unlock()
	for _, subject := range subjects {
		if _, err := b.settle(ctx, subject); err != nil && ctx.Err() == nil {
			b.logger.WarnContext(ctx, "the history still lacks a change", "subject", subject, "err", err)
		}
	}
}

// recordedAtOnce is how many answers StateAtStart waits for at once: few, as each event takes room of its namespace until its answer comes.
const recordedAtOnce = 16

// StateAtStart is State for a watcher that begins. It also stores the changes of the last minutes on StreamHistory: if NATS and a watcher ended while
// one was on its way to both streams, StreamChanges may have it alone, and no watcher publishes it again. StreamHistory knows what it has by the ids,
// for as long as it looks for duplicates. Half of that time is left for the reading.
func (b *Bus) StateAtStart(ctx context.Context, filterSubjects []string, fn func(events.Stored) error) error {
	info, err := infoOf(ctx, b.changes)
	if err != nil {
		return err
	}
	since := info.TimeStamp.Add(-b.history.CachedInfo().Config.Duplicates / 2) // by the clocks of servers
	var sent []*recording
	drain := func(most int) error {
		var first error
		for ; len(sent) > most; sent = sent[1:] {
			if err := b.recorded(ctx, sent[0]); !isConflict(err) { // A conflict: its watcher is storing it there.
				first = cmp.Or(first, err)
			}
		}
		return first
	}
	err = b.State(ctx, filterSubjects, func(stored events.Stored) error {
		if stored.MessageID != "" && stored.Time.After(since) {
			if r := b.beginRecordingAgain(ctx, stored); r != nil {
				sent = append(sent, r)
			}
			if err := drain(recordedAtOnce); err != nil {
				return err
			}
		}
		return fn(stored)
	})
	return cmp.Or(err, drain(0))
}

// beginRecordingAgain sends an event of CHANGES to HISTORY, under the id that it has there. It returns nil for what is no change.
func (b *Bus) beginRecordingAgain(ctx context.Context, stored events.Stored) *recording {
	c, err := stored.Change()
	msg, illegal := messageOf(stored)
	if err != nil || illegal != nil {
		return nil
	}
	return b.beginRecording(ctx, msg, stored.MessageID, c.Source.Sharer())
}
