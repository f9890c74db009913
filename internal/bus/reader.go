package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// findTimeout bounds an attempt to find a consumer or a stream. While their servers elect a leader, none of them responds.
const findTimeout = 2 * time.Second

// Reader reads events from streams. It is safe for concurrent use. It does not close the connection.
type Reader struct {
	// changes is the stream with the state, which is the last event on each subject. history is the stream with earlier events.
	changes, history jetstream.Stream
	historyRoot      string              // the prefix of the subjects of history
	js               jetstream.JetStream // reads the intakes of history; nil if there are none
	stall, lostAfter time.Duration       // the constants of the same names, except in tests
}

// OpenFleet returns a reader of a stream that sources StreamChanges of many clusters, with unchanged subjects. The stream's
// name is the operator's choice. OpenFleet only verifies that the stream exists.
func OpenFleet(ctx context.Context, nc *nats.Conn, stream string) (*Reader, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("opening jetstream: %w", err)
	}
	fleet, err := js.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("%w: %s does not exist", errStream, stream)
	case err != nil:
		return nil, fmt.Errorf("reading stream %s: %w", stream, err)
	}
	return &Reader{changes: fleet, history: fleet, historyRoot: events.ChangesRoot, js: js, stall: stall, lostAfter: lostAfter}, nil
}

// Answers returns nil if the servers of StreamChanges respond soon. They do not respond while they elect a leader, and a request from that time
// remains without a response, so a longer wait does not help. IsSilence reports whether an error means that there was no response.
func (r *Reader) Answers(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	_, err := infoOf(bounded, r.changes)
	return err
}

// infoOf asks a stream for its state, with a timeout, so that the caller has time to repeat a request that the servers have lost.
func infoOf(ctx context.Context, stream jetstream.Stream, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := stream.Info(bounded, opts...)
	if err != nil {
		return nil, fmt.Errorf("reading stream %s: %w", stream.CachedInfo().Config.Name, err)
	}
	return info, nil
}

// Last returns the last event on a subject. The error wraps ErrNotFound if there is none. A replicated stream may be slightly out of date.
func (r *Reader) Last(ctx context.Context, subject string) (events.Stored, error) {
	raw, err := r.last(ctx, subject)
	if err != nil {
		return events.Stored{}, err
	}
	return events.NewStored(raw.Subject, raw.Sequence, raw.Time, raw.Header, raw.Data), nil
}

// last returns the last message on a subject, with the errors of Last.
func (r *Reader) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	raw, err := r.changes.GetLastMsgForSubject(bounded, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, fmt.Errorf("reading %s: %w", subject, events.ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", subject, err)
	}
	// The server appends headers with the position of the message. Headers of the same names by a publisher come first, and nats.go would read those.
	raw.Subject = subject
	if sequences := raw.Header.Values(jetstream.SequenceHeader); len(sequences) > 1 {
		if raw.Sequence, err = strconv.ParseUint(sequences[len(sequences)-1], 10, 64); err != nil {
			return nil, fmt.Errorf("reading %s: the sequence: %w", subject, err)
		}
	}
	if times := raw.Header.Values(jetstream.TimeStampHeaer); len(times) > 1 {
		if raw.Time, err = time.Parse(time.RFC3339Nano, times[len(times)-1]); err != nil {
			return nil, fmt.Errorf("reading %s: the time: %w", subject, err)
		}
	}
	return raw, nil
}

// subject returns the subject on StreamChanges of an event of either stream.
func (r *Reader) subject(subject string) string {
	if rest, isHistory := strings.CutPrefix(subject, r.historyRoot); isHistory {
		return events.ChangesRoot + rest
	}
	return subject
}

// stored returns the event in a message of either stream.
func (r *Reader) stored(msg jetstream.Msg, meta *jetstream.MsgMetadata) events.Stored {
	return events.NewStored(r.subject(msg.Subject()), meta.Sequence.Stream, meta.Timestamp, msg.Headers(), msg.Data())
}

// State calls fn for the last event of each subject that matches one of the filters. It reads one filter after the other, each in the order of the
// stream. It covers every subject that exists throughout the call, and may call fn twice for a subject whose event is superseded during the call. A
// message that is not an event has Stored.Err set. If fn returns an error, State returns it unchanged.
//
// Each filter has its own consumer. With several filters, the server looks at all subjects of a block for each message. Reading n sources with one
// consumer would then cost O(n²), and the server could not answer any other request about the stream in the meantime.
func (r *Reader) State(ctx context.Context, filterSubjects []string, fn func(events.Stored) error) error {
	for _, filter := range filterSubjects {
		if err := r.stateOf(ctx, filter, fn); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) stateOf(ctx context.Context, filter string, fn func(events.Stored) error) error {
	left, err := r.Subjects(ctx, filter)
	if err != nil || len(left) == 0 {
		return err
	}
	err = r.read(ctx, r.changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter},
		DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		delete(left, msg.Subject())
		return fn(r.stored(msg, meta))
	})
	if err != nil {
		return err
	}
	// The server drops a superseded event slightly before it counts the new one. If the read ended in between, the subject was missed.
	for subject := range left {
		stored, err := r.Last(ctx, subject)
		if errors.Is(err, events.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return err
		}
		if err := fn(stored); err != nil {
			return err
		}
	}
	return nil
}

// Oldest returns when the oldest event that State would pass to fn was stored. The error wraps ErrNotFound if there is none.
func (r *Reader) Oldest(ctx context.Context, filterSubjects []string) (time.Time, error) {
	var at time.Time
	err := r.read(ctx, r.changes, jetstream.OrderedConsumerConfig{FilterSubjects: filterSubjects, DeliverPolicy: jetstream.DeliverAllPolicy},
		func(_ jetstream.Msg, meta *jetstream.MsgMetadata) error {
			at = meta.Timestamp
			return errFound
		})
	switch {
	case errors.Is(err, errFound):
		return at, nil
	case err != nil:
		return at, err
	}
	return at, fmt.Errorf("reading the oldest event: %w", events.ErrNotFound)
}

// Subjects returns the subjects of StreamChanges that match a filter, with the number of their events. For 50,000, the response has about 3 MB.
func (r *Reader) Subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	info, err := infoOf(ctx, r.changes, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}
