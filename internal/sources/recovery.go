package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// extentReader reads the extent and the subjects of the stream. A bus.Bus implements it.
type extentReader interface {
	Extent(ctx context.Context) (bus.Extent, error)
	Subjects(ctx context.Context, filter string) (map[string]uint64, error)
}

// sourceWatcher reports whether this watcher publishes the events of a source and has listed its objects. An informerSet implements it.
type sourceWatcher interface {
	watches(source events.Source) bool
}

// recovery detects that the stream was purged, rolled back or created again, and queues the sources of lost events, so that they are published again.
// A check takes a few short requests. If the stream has changed since the last check, it also reads the subjects of the stream.
type recovery struct {
	bus    extentReader
	reader *ledgerReader
	// interval is how often the stream is checked. After repeated losses it grows, because a stream that is too small loses an event for each one
	// that is published again.
	interval  time.Duration
	informers sourceWatcher
	pending   *pendingSources
	lost      chan<- struct{} // receives a signal when the sources of lost events are queued
	metrics   *metrics
	log       *slog.Logger

	seen bus.Extent // extent of the stream at the last check; the ledger has its events
}

// lossBackoff is the maximum factor of the interval while the stream loses events.
const lossBackoff = 32

// run checks the stream until ctx is done: at once, at each interval, and after each reconnect.
func (r *recovery) run(ctx context.Context, reconnected <-chan struct{}) {
	healthy := r.backoff(r.interval, r.interval)
	failing, losing := r.backoff(time.Second, r.interval), r.backoff(2*r.interval, lossBackoff*r.interval)
	for {
		var delay time.Duration
		lost, err := r.check(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			delay = failing.Step()
			r.log.WarnContext(ctx, "cannot check whether the stream has lost events", "err", err, "retry_in", delay)
		case lost:
			delay = losing.Step()
		default:
			delay = healthy.Step()
			failing, losing = r.backoff(time.Second, r.interval), r.backoff(2*r.interval, lossBackoff*r.interval)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		case <-reconnected:
		}
	}
}

func (r *recovery) backoff(first, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: min(first, most), Factor: 2, Jitter: 0.1, Steps: math.MaxInt32, Cap: most}
}

// check reports whether the stream has lost events, and queues their sources, so that they are published again.
func (r *recovery) check(ctx context.Context) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	extent, err := r.bus.Extent(bounded)
	if err != nil {
		return false, err
	}
	lost, err := r.suspect(bounded, extent)
	if err == nil && lost {
		lost, err = r.compare(ctx)
	}
	if err != nil {
		return false, err
	}
	r.seen = extent
	return lost, nil
}

// suspect reports whether the stream was created again or may lack an event of the ledger. An event of another watcher looks the same. A stream that
// was rolled back lacks at least the newest event.
func (r *recovery) suspect(ctx context.Context, extent bus.Extent) (bool, error) {
	newest, seq := r.reader.ledger.newest(r.reader.now(), r.informers.watches)
	switch {
	case !r.seen.Created.IsZero() && !r.seen.Created.Equal(extent.Created):
		return true, nil
	case seq == 0:
		return false, nil
	}
	stored, err := r.reader.bus.Last(ctx, events.Subject(r.reader.cluster, newest))
	switch {
	case errors.Is(err, events.ErrNotFound):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading the last event of %s: %w", newest, err)
	case stored.Seq != seq:
		return true, nil
	case extent.LastSeq == r.seen.LastSeq && extent.Events == r.seen.Events:
		return false, nil // No event has arrived that could hide a loss.
	}
	return r.lacks(ctx)
}

// lacks reports whether the stream has no event on the subject of an event in the ledger.
func (r *recovery) lacks(ctx context.Context) (bool, error) {
	known, now := r.reader.ledger.all(), r.reader.now()
	for _, kind := range r.reader.kinds {
		subjects, err := r.bus.Subjects(ctx, events.KindFilter(r.reader.cluster, kind))
		if err != nil {
			return false, err
		}
		for source, entry := range known {
			if source.Kind != kind || !entry.IsReadable() || !isHeld(entry, now) || !r.informers.watches(source) {
				continue
			}
			if _, there := subjects[events.Subject(r.reader.cluster, source)]; !there {
				return true, nil
			}
		}
	}
	return false, nil
}

// compare compares the whole ledger with the stream, and queues each source whose events differ.
func (r *recovery) compare(ctx context.Context) (bool, error) {
	known := r.reader.ledger.all()
	seen := make(map[events.Source]struct{}, len(known))
	var absent, outdated int64
	err := r.reader.each(ctx, r.reader.bus.State, func(source events.Source, stored *kinds.LastEvent) {
		seen[source] = struct{}{}
		entry := merge(known[source], stored)
		if r.update(source, known[source], entry) && entry.Lost {
			outdated++
		}
		known[source] = entry
	})
	if err != nil {
		return false, err
	}
	for source, before := range known {
		if _, there := seen[source]; there {
			continue
		}
		if entry := missing(before, r.reader.now()); r.update(source, before, entry) && entry != nil {
			absent++
		}
	}
	if absent+outdated > 0 {
		r.log.WarnContext(ctx, "stream CHANGES has lost events; publishing them again", "missing", absent, "outdated", outdated)
		r.metrics.lost.Add(ctx, absent+outdated)
		signal(r.lost)
	}
	return absent+outdated > 0, nil
}

// update puts an event of the stream into the ledger and queues the source. It returns false if the ledger has this event, or a later one that was
// published meanwhile, or if the source is not watched.
func (r *recovery) update(source events.Source, known, entry *kinds.LastEvent) bool {
	if isSame(known, entry) || !r.reader.ledger.replace(source, known, entry) || !r.informers.watches(source) {
		return false
	}
	r.pending.add(source)
	return true
}

// signal sends to a channel with room for one signal.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // A signal is already waiting.
	}
}
