package openbao

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// minGap is the minimum time between two polls. Polls requested meanwhile are combined into one.
	minGap = 500 * time.Millisecond
	// minRetry is the delay after the first failed poll. It doubles up to the interval, or up to maxRetry.
	minRetry = time.Second
	// maxRetry is shorter than the time for which the alert KeyturnStorePollFailing looks back for a failure.
	maxRetry = 15 * time.Minute
)

// pollRequests has requests for a poll before the next one is due. Waiting requests are combined into one.
type pollRequests chan struct{}

func newPollRequests() pollRequests { return make(pollRequests, 1) }

func (r pollRequests) ask() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// poller polls a store: at its interval, soon after a request, and with backoff after a failure. Between two polls it reads the static roles that
// are due to be rotated.
type poller struct {
	store    string
	interval time.Duration
	requests pollRequests
	sweep    func(context.Context) bool
	// rotations has the times at which readRoles is to be called, and for which roles.
	rotations *rotations
	readRoles func(ctx context.Context, roles []events.StorePath)
	status    *status
	metrics   *metrics
	now       func() time.Time
}

// run polls until ctx is done.
func (p *poller) run(ctx context.Context) {
	backoff := p.backoff()
	for ctx.Err() == nil {
		began := p.now()
		ok := p.sweep(ctx)
		took, delay := p.now().Sub(began), jittered(p.interval)
		if ok {
			backoff = p.backoff()
			p.status.notePoll(p.now())
			p.metrics.countPoll(ctx, p.store, "success")
			p.rotations.forget(began)
		} else if ctx.Err() == nil {
			// However long it took, it is repeated after maxRetry at the latest.
			took = min(took, maxRetry)
			delay = backoff.Step() - took
			p.metrics.countPoll(ctx, p.store, "failure")
		}
		p.rest(ctx, took, delay)
	}
}

// rest waits until the next poll. Requested polls take at most half of the time, because the gap before them is as long as the last poll took.
func (p *poller) rest(ctx context.Context, took, delay time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(max(minGap, took)):
	}
	took = 0
	for poll := time.After(delay); ; {
		select {
		case <-ctx.Done():
			return
		case <-p.requests:
			return
		case <-poll:
			return
		case <-p.rotation(took):
			began := p.now()
			p.readRoles(ctx, p.rotations.take())
			took = p.now().Sub(began)
		}
	}
}

// rotation returns a channel that is readable when a static role should have been rotated, but not before a gap as long as it took to read
// the last ones. It is nil if no rotation is expected.
func (p *poller) rotation(took time.Duration) <-chan time.Time {
	at, ok := p.rotations.next()
	if !ok {
		return nil
	}
	return time.After(max(at.Sub(p.now()), minGap, took))
}

// backoff returns the delays after failed polls.
func (p *poller) backoff() wait.Backoff {
	return wait.Backoff{Duration: minRetry, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: min(p.interval, maxRetry)}
}

// jittered returns the interval, up to a tenth shorter or longer, so that many watchers do not poll at once.
func jittered(interval time.Duration) time.Duration {
	return wait.Jitter(interval/10*9, 2.0/9)
}
