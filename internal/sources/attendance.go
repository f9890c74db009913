package sources

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// attendInterval is how often a watcher says on the stream that it watches.
	attendInterval = time.Hour
	// attendRetry is the delay before it tries again.
	attendRetry = time.Minute
)

// watchedPublisher says on the stream until when sources are watched: an events.Bus.
type watchedPublisher interface {
	PublishWatched(ctx context.Context, scope events.Scope, at time.Time) error
}

// attendance says on the stream until when every source in scope is on it, for absence in the next watcher.
type attendance struct {
	bus   watchedPublisher
	scope events.Scope
	// quiet returns a channel that is closed once every source that was noticed is on the stream, or waits for another try.
	quiet func() <-chan struct{}
	// publishedUntil returns the time at which the first of the objects that wait was noticed, or the given one if that is earlier.
	publishedUntil func(at time.Time) time.Time
	// watching reports whether every informer hears of changes.
	watching func() bool
	now      func() time.Time
	log      *slog.Logger
}

// run says so at once, at each interval, and whenever the stream has lost events, until ctx is done.
func (a *attendance) run(ctx context.Context, lost <-chan struct{}) {
	for {
		delay := attendInterval
		if err := a.note(ctx); err != nil && ctx.Err() == nil {
			delay = attendRetry
			a.log.WarnContext(ctx, "cannot say on the stream that sources are watched", "err", err, "retry_in", delay)
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-lost:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// note says that what existed when it was called is on the stream, unless an informer may have missed some of it. It says so of an earlier time if
// something that was created since waits: the next watcher would take that for what was always there.
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
