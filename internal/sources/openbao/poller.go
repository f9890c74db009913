package openbao

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	minGap = 500 * time.Millisecond // between two polls
	// minRetry is the delay after the first failed poll. It doubles up to the interval, or up to maxRetry.
	minRetry = time.Second
	// maxRetry is shorter than the period in which the alert KeyturnStoreFailing looks for a failure.
	maxRetry = 15 * time.Minute
	// concurrency is the maximum number of concurrent requests to a store, for the poller and the follower each.
	concurrency = 4
)

// wakeups wakes a goroutine before it is due. Waiting wake-ups are combined into one.
type wakeups chan struct{}

func (w wakeups) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// poller polls a store: at its interval, soon after a request, and with backoff after a failure.
type poller struct {
	config     *storeConfig
	requests   wakeups
	metadata   *metadataReader
	outlet     *outlet
	references *sharedReferences
	status     *status
	metrics    *metrics
	options    *Options

	// These fields belong to the goroutine of run.
	ways       map[mountName]*scanWay
	unanswered atomic.Int32 // consecutive requests without an answer, about the mount being read
}

// run polls until ctx is done.
func (p *poller) run(ctx context.Context) {
	now, interval := p.options.Now, p.config.interval
	fresh := wait.Backoff{Duration: minRetry, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: min(interval, maxRetry)}
	delays := fresh
	for ctx.Err() == nil {
		began := now()
		ok := p.poll(ctx)
		// The interval varies by a tenth, so that many watchers do not poll at the same time.
		took, delay := now().Sub(began), wait.Jitter(interval/10*9, 2.0/9)
		switch {
		case ok:
			delays = fresh
			p.status.notePoll(now())
			p.metrics.countPoll(ctx, p.config.Name, "success")
		case ctx.Err() == nil:
			// Even a long poll is repeated after maxRetry at the latest.
			took = min(took, maxRetry)
			delay = delays.Step() - took
			p.metrics.countPoll(ctx, p.config.Name, "failure")
		}
		// Requested polls take at most half of the time, because the gap before each is as long as the previous poll took.
		if !kube.Sleep(ctx, max(minGap, took)) {
			return
		}
		select {
		case <-ctx.Done():
		case <-p.requests:
		case <-time.After(delay):
		}
	}
}

// poll polls the whole store. It returns false if a retry may fix a failure.
func (p *poller) poll(ctx context.Context) bool {
	ok := true
	whole := map[mountName]bool{}
	for _, path := range slices.Concat(p.config.Poll.Mounts, p.config.Poll.DatabaseMounts, p.config.Poll.LDAPMounts) {
		in, err := p.metadata.mounts.named(ctx, cmp.Or(p.config.Namespace, events.RootNamespace), path)
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

// mountRead is one read of a mount as a whole.
type mountRead struct {
	*poller
	in      engineMount
	at      enginePlaces
	missing sets.Set[string] // known to have been there, and not found yet
	skipped skips
}

// readMount reads all secrets in a mount, and those that are known to have been there.
func (p *poller) readMount(ctx context.Context, in engineMount) error {
	p.unanswered.Store(0)
	began := p.options.Now()
	// These are determined before the mount is read, so that a secret that is created meanwhile does not look deleted.
	r := &mountRead{poller: p, in: in, missing: p.known(in.name())}
	err := r.readPresent(ctx)
	if err == nil {
		// A token that may read none of these is not an error of the mount, because they are only a part of it.
		err = r.skipped.rest(r.observeEach(ctx, r.missing.UnsortedList()))
	}
	if err == nil {
		err = r.skipped.most()
	}
	if err == nil {
		p.outlet.notePoll(in.name(), began)
	}
	switch part := partOf(in.name()); {
	case err != nil: // The error is reported for the whole mount.
	case len(r.skipped.errs) > 0:
		p.status.noteFailure(ctx, part, r.skipped.errs...)
	default:
		p.status.noteSuccess(ctx, part)
	}
	return err
}

// readPresent reads the secrets in the mount, and removes them from missing.
func (r *mountRead) readPresent(ctx context.Context) (err error) {
	r.at, err = r.in.places()
	switch {
	case err != nil:
		return err
	case r.in.engine == events.EngineKV:
		return r.readSecrets(ctx)
	}
	return r.readListed(ctx)
}

// observeEach reads and observes each path of the mount, and returns the results.
func (r *mountRead) observeEach(ctx context.Context, paths []string) []error {
	return r.readEach(ctx, paths, func(path string) error {
		o, err := r.metadata.readIn(ctx, r.in, path)
		if err == nil {
			r.outlet.emitPolled(ctx, o)
		}
		return err
	})
}

// readEach calls read for each path, a few concurrently, and returns the results. It stops after as many consecutive requests without an answer as
// are made concurrently: each may take until its timeout, and there may be thousands.
func (p *poller) readEach(ctx context.Context, paths []string, read func(path string) error) []error {
	errs := slices.Repeat([]error{errSilent}, len(paths))
	going, stop := context.WithCancel(ctx)
	defer stop()
	if p.unanswered.Load() >= concurrency {
		stop()
	}
	workqueue.ParallelizeUntil(going, concurrency, len(paths), func(i int) {
		// A store that answers 503 is not silent, because only one of its namespaces may be locked.
		if errs[i] = read(paths[i]); errs[i] == nil || !down(errs[i]) || code(errs[i]) != 0 {
			p.unanswered.Store(0)
		} else if p.unanswered.Add(1) >= concurrency {
			stop()
		}
	})
	return errs
}

// known returns the paths of a mount that are known to exist. It iterates over every source, so audit lines must never cause it.
func (p *poller) known(in mountName) sets.Set[string] {
	return sets.New(p.options.Known(p.config.Name, in.namespace, in.mount)...)
}
