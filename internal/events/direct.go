package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

const (
	// batchSize is how many messages one request asks for. A server refuses to answer for more than 1024 subjects.
	batchSize = 512
	// batchBytes bounds the messages of one answer, but for the last of them.
	batchBytes = 4 << 20
	// batchTimeout bounds the wait for one answer. What is missing of it is asked for again.
	batchTimeout = 2 * time.Second
	// askAgainAfter is how long a reading waits after a request without an answer.
	askAgainAfter = 100 * time.Millisecond
	// followInterval is how often a stream is asked for what is new.
	followInterval = 500 * time.Millisecond
)

// Headers of an answer to a direct request: https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-31.md.
const (
	// headerPending counts the messages that match and follow.
	headerPending = "Nats-Num-Pending"
	// headerBefore is the sequence of the message before this one in the same answer, 0 in the first.
	headerBefore = "Nats-Last-Sequence"
)

// answer is the messages that a server sends for one request.
type answer = iter.Seq2[*jetstream.RawStreamMsg, error]

// readDirectly is read without a consumer. It knows the delivery policies "all", "by start time" and "by start sequence".
func (r *Reader) readDirectly(
	ctx context.Context, stream string, config jetstream.OrderedConsumerConfig, fn func(*jetstream.RawStreamMsg) error,
) error {
	filters := make([]*directFilter, len(config.FilterSubjects))
	for i, subject := range config.FilterSubjects {
		filters[i] = &directFilter{subject: subject, next: max(1, config.OptStartSeq), since: config.OptStartTime}
	}
	for {
		msg, err := r.nextOf(ctx, stream, filters)
		if msg == nil || err != nil {
			return err
		}
		if err := fn(msg); err != nil {
			return err
		}
	}
}

// nextOf returns the next message of the stream that matches a filter. Nil: there is none.
func (r *Reader) nextOf(ctx context.Context, stream string, filters []*directFilter) (*jetstream.RawStreamMsg, error) {
	var first *directFilter
	for _, filter := range filters {
		for len(filter.read) == 0 && !filter.caughtUp {
			ask := func(ctx context.Context) (bool, error) { return filter.ask(ctx, r.directly, stream) }
			if err := r.insist(ctx, stream, ask); err != nil {
				return nil, err
			}
		}
		if len(filter.read) > 0 && (first == nil || filter.read[0].Sequence < first.read[0].Sequence) {
			first = filter
		}
	}
	if first == nil {
		return nil, nil
	}
	msg := first.read[0]
	first.read = first.read[1:]
	return msg, nil
}

// directFilter is what was read of one filter, and not passed on yet.
type directFilter struct {
	subject string
	// next is the sequence to go on with. Since replaces it until a message has been read.
	next  uint64
	since *time.Time
	read  []*jetstream.RawStreamMsg
	// caughtUp says that the stream has no more.
	caughtUp bool
}

// ask asks for the next messages. It reports whether the server has answered.
func (f *directFilter) ask(ctx context.Context, js jetstream.JetStream, stream string) (bool, error) {
	options := []jetstreamext.GetBatchOpt{jetstreamext.GetBatchSubject(f.subject), jetstreamext.GetBatchMaxBytes(batchBytes)}
	if f.since != nil {
		options = append(options, jetstreamext.GetBatchStartTime(*f.since))
	} else {
		options = append(options, jetstreamext.GetBatchSeq(f.next))
	}
	messages, err := jetstreamext.GetBatch(ctx, js, stream, batchSize, options...)
	if err != nil {
		return false, err
	}
	f.read, f.caughtUp, err = collect(messages)
	if len(f.read) > 0 {
		f.next, f.since = f.read[len(f.read)-1].Sequence+1, nil
	}
	return len(f.read) > 0 || f.caughtUp, err
}

// lastDirectly calls fn for the last message on each subject of StreamChanges that has one.
func (r *Reader) lastDirectly(ctx context.Context, subjects []string, fn func(*jetstream.RawStreamMsg) error) error {
	for left := range slices.Chunk(subjects, batchSize) {
		for complete := false; !complete && len(left) > 0; { // If it is complete, those that are left have been deleted.
			var read []*jetstream.RawStreamMsg
			var err error
			if read, complete, err = r.lastOf(ctx, left); err != nil {
				return err
			}
			for _, msg := range read {
				left = slices.DeleteFunc(left, func(subject string) bool { return subject == msg.Subject })
				if err := fn(msg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lastOf returns the last messages on subjects, and reports whether these are all that there are.
func (r *Reader) lastOf(ctx context.Context, subjects []string) (read []*jetstream.RawStreamMsg, complete bool, err error) {
	stream := r.changes.CachedInfo().Config.Name
	err = r.insist(ctx, stream, func(ctx context.Context) (bool, error) {
		messages, err := jetstreamext.GetLastMsgsFor(ctx, r.directly, stream, subjects)
		if err != nil {
			return false, err
		}
		read, complete, err = collect(messages)
		return len(read) > 0 || complete, err
	})
	return read, complete, err
}

// followDirectly is follow without a consumer. While no server answers, it waits.
func (r *Reader) followDirectly(ctx context.Context, stream jetstream.Stream, config jetstream.OrderedConsumerConfig,
	fn func(*jetstream.RawStreamMsg) error,
) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followInterval):
		}
		err := r.readDirectly(ctx, stream.CachedInfo().Config.Name, config, func(msg *jetstream.RawStreamMsg) error {
			config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartSequencePolicy, nil
			config.OptStartSeq = msg.Sequence + 1
			return fn(msg)
		})
		if err != nil && !errors.Is(err, errUnanswered) {
			return err
		}
	}
}

// insist asks until a server answers. The error is errUnanswered when that has taken too long.
func (r *Reader) insist(ctx context.Context, stream string, ask func(context.Context) (answered bool, err error)) error {
	for since := time.Now(); ; {
		bounded, cancel := context.WithTimeout(ctx, batchTimeout)
		answered, err := ask(bounded)
		cancel()
		switch {
		case answered:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("reading stream %s: %w", stream, context.Cause(ctx))
		case time.Since(since) > r.lostAfter:
			err = errors.Join(errUnanswered, err)
			return fmt.Errorf("reading stream %[1]s, from NATS 2.11 on and as a user who may publish on $JS.API.DIRECT.GET.%[1]s: %w", stream, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(askAgainAfter):
		}
	}
}

// collect returns the messages of an answer up to the first that is missing, and reports whether these are all that the stream has.
func collect(messages answer) (read []*jetstream.RawStreamMsg, complete bool, err error) {
	before := uint64(0)
	for msg, err := range messages {
		switch {
		case errors.Is(err, jetstreamext.ErrNoMessages):
			return read, true, nil
		case err != nil:
			return read, false, err
		case msg.Header.Get(headerBefore) != strconv.FormatUint(before, 10):
			return read, false, nil
		}
		before = msg.Sequence
		complete = msg.Header.Get(headerPending) == "0"
		read = append(read, msg)
	}
	return read, complete, nil
}
