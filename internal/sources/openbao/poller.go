package openbao

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
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

// poller reads everything that is polled in a store: at its interval, soon after a request, and with backoff after a failure.
type poller struct {
	config     *storeConfig
	requests   pollRequests
	metadata   *metadataReader
	outlet     *outlet
	references *sharedReferences
	status     *status
	metrics    *metrics
	options    *Options

	// The fields below belong to the goroutine of run.
	ways       map[mountName]scanWay
	unanswered atomic.Int32 // requests in a row, about the mount that is read
}

// run polls until ctx is done.
func (p *poller) run(ctx context.Context) {
	now, interval := p.options.Now, p.config.interval
	fresh := wait.Backoff{Duration: minRetry, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: min(interval, maxRetry)}
	delays := fresh
	for ctx.Err() == nil {
		began := now()
		ok := p.poll(ctx)
		// The interval is up to a tenth shorter or longer, so that many watchers do not poll at once.
		took, delay := now().Sub(began), wait.Jitter(interval/10*9, 2.0/9)
		switch {
		case ok:
			delays = fresh
			p.status.notePoll(now())
			p.metrics.countPoll(ctx, p.config.Name, "success")
		case ctx.Err() == nil:
			// However long it took, it is repeated after maxRetry at the latest.
			took = min(took, maxRetry)
			delay = delays.Step() - took
			p.metrics.countPoll(ctx, p.config.Name, "failure")
		}
		// Requested polls take at most half of the time, because the gap before them is as long as the last poll took.
		if !backoff.Sleep(ctx, max(minGap, took)) {
			return
		}
		select {
		case <-ctx.Done():
		case <-p.requests:
		case <-time.After(delay):
		}
	}
}

// poll reads everything that is polled. It returns false if something failed that a retry may fix.
func (p *poller) poll(ctx context.Context) bool {
	ok := true
	whole := map[mountName]bool{}
	for _, path := range slices.Concat(p.config.Poll.Mounts, p.config.Poll.DatabaseMounts, p.config.Poll.LDAPMounts) {
		in, err := p.metadata.mounts.named(ctx, orDefault(p.config.Namespace, events.RootNamespace), path)
		if err == nil {
			whole[in.name()] = true
			err = p.readMount(ctx, in)
		}
		ok = p.report(ctx, path, err) && ok
	}
	if p.config.Poll.Referenced {
		ok = p.report(ctx, referencedPaths, p.readReferences(ctx, whole)) && ok
	}
	return ok
}

// report records the result of reading the subject. It returns false if a retry may fix the error.
func (p *poller) report(ctx context.Context, subject string, err error) bool {
	if err == nil {
		p.status.noteSuccess(ctx, subject)
		return true
	}
	p.status.noteFailure(ctx, subject, err)
	if errors.Is(err, errUnversioned) {
		return true
	}
	p.status.noteFailedPoll()
	return false
}
