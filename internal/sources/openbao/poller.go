package openbao

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// minGap is the minimum time between two polls. Polls requested meanwhile are one.
	minGap = 500 * time.Millisecond
	// minRetry is the delay after the first failed poll. It doubles up to the interval.
	minRetry = time.Second
)

// pollRequests are requests of a poll before the next one is due. Requests that wait are one.
type pollRequests chan struct{}

func newPollRequests() pollRequests { return make(pollRequests, 1) }

func (r pollRequests) ask() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// poller polls a store: at its interval, soon after a request, and with backoff after a failure.
type poller struct {
	store    string
	interval time.Duration
	requests pollRequests
	sweep    func(context.Context) bool
	status   *status
	metrics  *metrics
	now      func() time.Time
}

// run polls until ctx is done.
func (p *poller) run(ctx context.Context) {
	backoff := p.backoff()
	for ctx.Err() == nil {
		began := p.now()
		delay := jittered(p.interval)
		if p.sweep(ctx) {
			backoff = p.backoff()
			p.status.notePoll(p.now())
			p.metrics.countPoll(ctx, p.store, "success")
		} else if ctx.Err() == nil {
			delay = backoff.Step()
			p.metrics.countPoll(ctx, p.store, "failure")
		}
		p.rest(ctx, p.now().Sub(began), delay)
	}
}

// rest waits until the next poll. Requested polls take at most half of the time: the gap before them is as long as the last poll took.
func (p *poller) rest(ctx context.Context, took, delay time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(max(minGap, took)):
	}
	select {
	case <-ctx.Done():
	case <-p.requests:
	case <-time.After(delay):
	}
}

// backoff returns the delays after failed polls.
func (p *poller) backoff() wait.Backoff {
	return wait.Backoff{Duration: minRetry, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: p.interval}
}

// jittered returns the interval, up to a tenth shorter or longer, so that many watchers do not poll at once.
func jittered(interval time.Duration) time.Duration {
	return wait.Jitter(interval/10*9, 2.0/9)
}
