package bus

import (
	"context"

	"github.com/keyturn/keyturn/internal/events"
)

// StateAtStart is State for a watcher that begins. It also stores the changes of the last minutes on StreamHistory: if NATS and a watcher ended while
// one was on its way to both streams, StreamChanges may have it alone, and no watcher publishes it again. StreamHistory knows what it has by the ids,
// for as long as it looks for duplicates. Half of that time is left for the reading.
func (b *Bus) StateAtStart(ctx context.Context, filterSubjects []string, fn func(events.Stored) error) error {
	info, err := infoOf(ctx, b.changes)
	if err != nil {
		return err
	}
	since := info.TimeStamp.Add(-b.history.CachedInfo().Config.Duplicates / 2) // by the clocks of servers
	return b.State(ctx, filterSubjects, func(stored events.Stored) error {
		if stored.MessageID != "" && stored.Time.After(since) {
			if err := b.recordAgain(ctx, stored); err != nil {
				return err
			}
		}
		return fn(stored)
	})
}

// recordAgain records an event of CHANGES, under the id that it has there. It leaves out what is no change.
func (b *Bus) recordAgain(ctx context.Context, stored events.Stored) error {
	c, err := stored.Change()
	msg, illegal := ToMsg(stored.Event, stored.Subject)
	if err != nil || illegal != nil {
		return nil //nolint:nilerr // it is left out
	}
	return b.record(ctx, msg, stored.MessageID, c.Source.Sharer())
}
