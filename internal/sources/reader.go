package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// stateReader reads the last events of the cluster's sources. A bus.Bus implements it.
type stateReader interface {
	State(ctx context.Context, filters []string, fn func(events.Stored) error) error
	StateAtStart(ctx context.Context, filters []string, fn func(events.Stored) error) error
	Last(ctx context.Context, subject string) (events.Stored, error)
}

// ledgerReader fills the ledger from the stream.
type ledgerReader struct {
	bus     stateReader
	cluster string
	kinds   []events.Kind
	ledger  *ledger
	now     func() time.Time
	log     *slog.Logger
}

// readAll reads the last event of every source of the kinds as the watcher begins. It retries until it succeeds; it returns false if ctx ended first.
func (r *ledgerReader) readAll(ctx context.Context) bool {
	return retryUntilDone(ctx, r.log, "last events", func() error {
		return r.each(ctx, r.bus.StateAtStart, func(source events.Source, stored *kinds.LastEvent) {
			r.ledger.set(source, merge(r.ledger.get(source), stored))
		})
	})
}

// retryUntilDone calls read until it succeeds, and logs each error together with what. It returns false if ctx ended first.
func retryUntilDone(ctx context.Context, log *slog.Logger, what string, read func() error) bool {
	delays := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: math.MaxInt32, Cap: 30 * time.Second}
	for {
		err := read()
		if err == nil {
			return true
		}
		delay := delays.Step()
		log.ErrorContext(ctx, "cannot read the stream", "what", what, "err", err, "retry_in", delay)
		if !kube.Sleep(ctx, delay) {
			return false
		}
	}
}

// readState is State or StateAtStart of a stateReader.
type readState = func(ctx context.Context, filters []string, fn func(events.Stored) error) error

// each calls fn for the last event of every source of the kinds. It may call fn twice for a source.
func (r *ledgerReader) each(ctx context.Context, read readState, fn func(source events.Source, stored *kinds.LastEvent)) error {
	filters := make([]string, 0, len(r.kinds))
	for _, kind := range r.kinds {
		filters = append(filters, events.KindFilter(r.cluster, kind))
	}
	return read(ctx, filters, func(stored events.Stored) error {
		if source, entry, ok := r.parse(ctx, stored); ok {
			fn(source, entry)
		}
		return nil
	})
}

// refresh reads the last event of one source.
func (r *ledgerReader) refresh(ctx context.Context, source events.Source) error {
	known := r.ledger.get(source)
	stored, err := r.bus.Last(ctx, events.Subject(r.cluster, source))
	switch {
	case errors.Is(err, events.ErrNotFound):
		r.ledger.replace(source, known, missing(known, r.now()))
		return nil
	case err != nil:
		return fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	if _, entry, ok := r.parse(ctx, stored); ok {
		r.ledger.replace(source, known, merge(known, entry))
	}
	return nil
}

// parse returns the last event of a subject and its source. If the event cannot be read, only its sequence is set, which the next event supersedes.
// It returns false if the subject does not belong to a source.
func (r *ledgerReader) parse(ctx context.Context, stored events.Stored) (events.Source, *kinds.LastEvent, bool) {
	change, err := stored.Change()
	if now := r.now().UTC(); change.Time.After(now) {
		// The clock of its watcher is ahead. Everything that this watcher sees from now on is later.
		change.Time = now
	}
	if err == nil {
		var entry *kinds.LastEvent
		if entry, err = kinds.NewLastEvent(stored.Seq, change); err == nil {
			return change.Source, entry, true
		}
	}
	r.log.WarnContext(ctx, "cannot read an event on the stream", "subject", stored.Subject, "err", err)
	address, err := events.ParseSubject(stored.Subject)
	return address.Source(), kinds.UnreadableEvent(stored.Seq), err == nil
}

// tombstoneInterval is how often the ledger drops the deletions that the stream has dropped.
const tombstoneInterval = time.Hour

// forgetTombstones drops those deletions at each interval until ctx is done, so that not every former source stays in memory.
func (r *ledgerReader) forgetTombstones(ctx context.Context) {
	for kube.Sleep(ctx, tombstoneInterval) {
		r.ledger.forgetTombstones(r.now())
	}
}
