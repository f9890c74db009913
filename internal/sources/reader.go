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
)

// stateReader reads the last events of the cluster's sources: an events.Bus.
type stateReader interface {
	State(ctx context.Context, filters []string, fn func(events.Stored) error) error
	Last(ctx context.Context, subject string) (events.Stored, error)
}

// ledgerReader fills the ledger from the stream.
type ledgerReader struct {
	bus     stateReader
	cluster string
	ledger  *ledger
	log     *slog.Logger
}

// readAll reads the last event of every source of the kinds. It retries until it succeeds, and returns false if ctx ended
// first.
func (r *ledgerReader) readAll(ctx context.Context, kinds []events.Kind) bool {
	filters := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		filters = append(filters, events.KindFilter(r.cluster, kind))
	}
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: math.MaxInt32, Cap: 30 * time.Second}
	for {
		err := r.bus.State(ctx, filters, func(stored events.Stored) error {
			r.remember(ctx, stored)
			return nil
		})
		if err == nil {
			return true
		}
		delay := backoff.Step()
		r.log.ErrorContext(ctx, "cannot read the last events", "err", err, "retry_in", delay)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(delay):
		}
	}
}

// refresh reads the last event of one source.
func (r *ledgerReader) refresh(ctx context.Context, source events.Source) error {
	stored, err := r.bus.Last(ctx, events.Subject(r.cluster, source))
	if errors.Is(err, events.ErrNotFound) {
		r.ledger.forget(source)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the last event of %s: %w", source, err)
	}
	r.remember(ctx, stored)
	return nil
}

// remember records the last event of a subject. If it cannot be read, the source is compared with the event before it; only
// its sequence counts, because the next event has to supersede it.
func (r *ledgerReader) remember(ctx context.Context, stored events.Stored) {
	change, err := stored.Change()
	if err == nil {
		var entry *lastEvent
		if entry, err = newLastEvent(stored.Seq, change); err == nil {
			r.ledger.set(change.Source, entry)
			return
		}
	}
	r.log.WarnContext(ctx, "cannot read an event on the stream", "subject", stored.Subject, "err", err)
	if address, err := events.ParseSubject(stored.Subject); err == nil {
		r.ledger.supersede(events.Source{Kind: address.Kind, Namespace: address.Namespace, Name: address.Name}, stored.Seq)
	}
}
