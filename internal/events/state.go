package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// State calls fn for the last event of each subject that matches one of the filters. It reads one filter after the other, each in the order of the
// stream. It covers every subject that exists throughout the call, and may call fn twice for a subject whose event is superseded during the call. A
// message that is not an event has Stored.Err set. If fn returns an error, State returns it unchanged.
//
// Each filter has its own consumer. With several filters, the server looks at all subjects of a block for each message. Reading n sources with one
// consumer would then cost O(n²), and the server could not answer any other request about the stream in the meantime.
func (r *Reader) State(ctx context.Context, filterSubjects []string, fn func(Stored) error) error {
	for _, filter := range filterSubjects {
		if err := r.stateOf(ctx, filter, fn); err != nil {
			return err
		}
	}
	return nil
}

// stateOf is State for one filter.
func (r *Reader) stateOf(ctx context.Context, filter string, fn func(Stored) error) error {
	left, err := r.Subjects(ctx, filter)
	if err != nil || len(left) == 0 {
		return err
	}
	err = r.read(ctx, r.changes, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter},
		DeliverPolicy:  jetstream.DeliverLastPerSubjectPolicy,
	}, func(msg jetstream.Msg, meta *jetstream.MsgMetadata) error {
		delete(left, msg.Subject())
		return fn(newStored(msg.Subject(), meta.Sequence.Stream, meta.Timestamp, msg.Headers(), msg.Data()))
	})
	if err != nil {
		return err
	}
	// The server drops a superseded event slightly before it counts the new one. If the read ended between the two, the
	// subject was missed.
	for subject := range left {
		stored, err := r.Last(ctx, subject)
		if errors.Is(err, ErrNotFound) {
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

// Oldest returns when the oldest event that matches one of the filters was stored, among the events that State would pass to fn. The error wraps
// ErrNotFound if there is none.
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
	return at, fmt.Errorf("reading the oldest event: %w", ErrNotFound)
}

// Subjects returns the subjects of StreamChanges that match a filter. For 50,000 of them the answer has about 3 MB.
func (r *Reader) Subjects(ctx context.Context, filter string) (map[string]struct{}, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := r.changes.Info(bounded, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("reading the subjects of stream %s: %w", r.changes.CachedInfo().Config.Name, err)
	}
	subjects := make(map[string]struct{}, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		subjects[subject] = struct{}{}
	}
	return subjects, nil
}
