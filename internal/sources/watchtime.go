package sources

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

const (
	attendInterval = time.Hour   // how often a watcher publishes its watch time
	attendRetry    = time.Minute // the delay before a failed attempt is repeated
)

// watchedPublisher publishes the time up to which sources were watched. A bus.Bus implements it.
type watchedPublisher interface {
	PublishWatched(ctx context.Context, scope events.Scope, at time.Time) error
}

// attendance publishes the watch time: the time up to which the stream is complete for this scope. The next watcher reads it at its start, to find
// the objects that were created while no watcher ran: see absence.
type attendance struct {
	bus       watchedPublisher
	scope     events.Scope
	pending   *pendingSources
	readiness *readiness
	now       func() time.Time
	log       *slog.Logger
}

// run publishes the watch time at once, at each interval, and after each loss of events on the stream, until ctx is done.
func (a *attendance) run(ctx context.Context, lost <-chan struct{}) {
	for {
		delay := attendInterval
		if err := a.publish(ctx); err != nil && ctx.Err() == nil {
			delay = attendRetry
			if !errors.Is(err, errNotWatching) {
				a.log.WarnContext(ctx, "cannot publish the watch time", "err", err, "retry_in", delay)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		case <-lost:
		}
	}
}

// errNotWatching means that an informer may have missed something.
var errNotWatching = errors.New("not every informer is watching")

// publish publishes the current time as the watch time, once everything that existed at this time is on the stream. It returns errNotWatching if an
// informer may have missed something. If a created object is still waiting, the watch time is before its creation: otherwise, the next watcher would
// assume that the object had always existed.
func (a *attendance) publish(ctx context.Context) error {
	at := a.now()
	if !a.readiness.isWatching(at) {
		return errNotWatching
	}
	select {
	case <-ctx.Done():
		return nil
	case <-a.pending.quiet():
	}
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return a.bus.PublishWatched(bounded, a.scope, a.pending.publishedUntil(at))
}

const (
	clockTolerance = 10 * time.Minute // the maximum difference between the clocks of the API server and a watcher
	bootstrap      = time.Hour        // how long before the first watcher a source may have been created together with its readers
)

// watchedReader reads the watch times of the cluster. A bus.Bus implements it.
type watchedReader interface {
	Watched(ctx context.Context) ([]events.Watched, error)
}

// absence finds the objects in the first list that were created while no watcher ran. The stream has every object that a watcher of its scope has
// seen, and the watch times. Both are read before anything is listed.
type absence struct {
	scope   events.Scope
	known   *ledger
	began   time.Time        // when this watcher started
	earlier []events.Watched // the watch times of the others
}

// read reads the watch times of earlier watchers. It retries until it succeeds, and returns false if ctx ended first.
func (a *absence) read(ctx context.Context, b watchedReader, now time.Time, log *slog.Logger) bool {
	a.began = now
	if len(a.scope.Kinds) == 0 {
		return true
	}
	return retryUntilDone(ctx, log, "the watch times", func() error {
		var err error
		a.earlier, err = b.Watched(ctx)
		return err
	})
}

// until returns the time up to which a source was watched before, and false if it was not.
func (a *absence) until(source events.Source) (time.Time, bool) {
	var last time.Time
	for _, w := range a.earlier {
		if w.NamespaceSelector == a.scope.NamespaceSelector && w.Selector == a.scope.Selector && w.Covers(source) && w.Time.After(last) {
			last = w.Time
		}
	}
	return last, !last.IsZero()
}

// isNew reports whether an object was created, whether or not a watcher ran at that time, and not brought into scope by a label.
func (a *absence) isNew(o *kinds.Object, inFirstList bool) bool {
	if a.isLabeled(o) {
		return false
	}
	if !inFirstList {
		return true
	}
	// A watcher has seen the source, even if the last event cannot be read.
	if a.known.get(o.Source) != nil {
		return false
	}
	until, watched := a.until(o.Source)
	return watched && o.Created().After(until.Add(-clockTolerance))
}

// isRecent reports whether an object that was never watched was created shortly before this watcher started.
func (a *absence) isRecent(o *kinds.Object) bool {
	if _, watched := a.until(o.Source); watched || a.isLabeled(o) {
		return false
	}
	created := o.Created()
	return created.After(a.began.Add(-bootstrap)) && created.Before(a.began.Add(clockTolerance))
}

// isLabeled reports whether an object may have come into scope by a new label.
func (a *absence) isLabeled(o *kinds.Object) bool { return a.scope.Selector != "" && !o.AsCreated }
