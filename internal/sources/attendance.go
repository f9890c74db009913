package sources

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// attendInterval is how often a watcher records on the stream that it is watching.
	attendInterval = time.Hour
	// attendRetry is the delay before a failed attempt is repeated.
	attendRetry = time.Minute
)

// watchedPublisher records on the stream up to when sources are watched. An events.Bus implements it.
type watchedPublisher interface {
	PublishWatched(ctx context.Context, scope events.Scope, at time.Time) error
}

// attendance records on the stream the time up to which every source in scope is on it. The absence of the next watcher reads that.
type attendance struct {
	bus   watchedPublisher
	scope events.Scope
	// quiet returns a channel that is closed once every source that was noticed is on the stream or waits for a retry.
	quiet func() <-chan struct{}
	// publishedUntil returns the time at which the first of the waiting objects was noticed, or the given time if that is earlier.
	publishedUntil func(at time.Time) time.Time
	// watching reports whether every informer receives changes.
	watching func() bool
	now      func() time.Time
	log      *slog.Logger
}

// run calls note at once, at each interval, and whenever the stream has lost events, until ctx is done.
func (a *attendance) run(ctx context.Context, lost <-chan struct{}) {
	for {
		delay := attendInterval
		if err := a.note(ctx); err != nil && ctx.Err() == nil {
			delay = attendRetry
			a.log.WarnContext(ctx, "cannot say on the stream that sources are watched", "err", err, "retry_in", delay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		case <-lost:
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// note records that everything that exists when it is called is on the stream, unless an informer may have missed some of it. If an object that was
// created is still waiting, note records the time before that: otherwise the next watcher would take the object for one that was always there.
func (a *attendance) note(ctx context.Context) error {
	if !a.watching() {
		return nil
	}
	at := a.now()
	select {
	case <-ctx.Done():
		return nil
	case <-a.quiet():
	}
	bounded, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return a.bus.PublishWatched(bounded, a.scope, a.publishedUntil(at))
}
