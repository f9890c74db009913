package openbao

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

const (
	maxLooks = 4096 // waiting paths, each of a few hundred bytes, at most a few thousand
	// maxSpare limits the waiting paths when one in an unknown mount is put off: many lines may be about mounts that the token may not see.
	maxSpare = maxLooks / 4
	maxTries = 20 // while the store answers, which takes about six minutes
)

// look is a path of the store to look at, because a line of the audit log names it or because the rotation of a static role is due.
type look struct {
	entry      entry // of the last line about the path, or of the expected rotation
	isRotation bool  // the rotation is only expected, without a line
	wasPutOff  bool  // its mount was not found
	tries      int   // looks that the store answered
	due        time.Time
	backoff    wait.Backoff
}

func newLook(e entry) look {
	return look{entry: e, backoff: wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: 30 * time.Second}}
}

type requestPath struct{ namespace, path string }

func (l *look) path() requestPath { return requestPath{l.entry.namespace, l.entry.path} }

// looks is the bounded set of waiting looks. It is safe for concurrent use.
type looks struct {
	added wakeups // receives an element after a look was put

	mu      sync.Mutex
	waiting map[requestPath]look
}

func newLooks() *looks {
	return &looks{added: make(wakeups, 1), waiting: make(map[requestPath]look)}
}

// put adds a look, or returns false if there is no room. Of two at one path, it keeps the earlier due time, and the later line by the store's clock.
func (l *looks) put(one look) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, waits := l.waiting[one.path()]
	switch {
	case !waits && len(l.waiting) >= maxLooks:
		return false
	case waits && !one.isRotation:
		last := one.entry
		if before.entry.at.After(last.at) {
			last = before.entry
		}
		if before.due.Before(one.due) {
			one = before
		}
		one.entry = last
	}
	l.waiting[one.path()] = one
	l.added.wake()
	return true
}

func (l *looks) take(now time.Time) []look {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []look
	for path, one := range l.waiting {
		if !one.due.After(now) {
			due = append(due, one)
			delete(l.waiting, path)
		}
	}
	return due
}

func (l *looks) untilDue(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := time.Hour
	for _, one := range l.waiting {
		next = min(next, one.due.Sub(now))
	}
	return max(next, 0)
}

func (l *looks) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// follower looks at the paths that the audit log names, and at static roles whose rotation is due. It observes what it reads: a line only tells where
// to look, and who made the change.
type follower struct {
	looks    *looks
	metadata *metadataReader
	outlet   *outlet
	status   *status
	polls    wakeups
	now      func() time.Time
}

// run looks until ctx is done, and then a last time at the paths of waiting lines: they were accepted, and for a write in KV v1 there is only the
// line.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.looks.added:
		case <-f.metadata.rotations.added:
		case <-time.After(min(f.looks.untilDue(f.now()), f.metadata.rotations.untilDue(f.now()))):
		}
		f.lookAtDue(ctx, f.looks, f.now())
		f.lookAtDue(ctx, f.metadata.rotations, f.now())
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	f.lookAtDue(last, f.looks, f.now().Add(time.Minute)) // No line is put off for longer.
}

// lookAtDue looks at the paths that are due, a few concurrently.
func (f *follower) lookAtDue(ctx context.Context, from *looks, at time.Time) {
	due := from.take(at)
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), concurrency, len(due), func(i int) {
		if done := f.look(ctx, &due[i]); !done && !from.put(due[i]) {
			f.polls.wake()
		}
	})
}

// look looks at a path and observes its state. It returns false if the path needs another look, until the state is as new as the line.
func (f *follower) look(ctx context.Context, l *look) (done bool) {
	in, err := f.metadata.mounts.find(ctx, l.entry.namespace, l.entry.path)
	switch {
	case err != nil && final(err) && !l.wasPutOff: // The mount, or its namespace, may be newer than the mount table.
		l.wasPutOff, l.due = true, f.now().Add(maxNoMountAge)
		if f.looks.len() < maxSpare {
			return false
		}
		f.polls.wake()
		return true
	case err != nil:
		mount, _, _ := strings.Cut(l.entry.path, "/")
		return f.fail(ctx, mount, l, err)
	}
	c, ok := judge(&l.entry, in)
	switch {
	case !ok:
		return true
	case in.isPlain: // The line is the observation.
		f.noteSuccess(ctx, in)
		o := f.metadata.config.observation(in, c.path, time.Time{}, l.entry.received)
		o.State, o.Request = c.state, l.entry.request
		o.attribute(&l.entry, c)
		f.outlet.emit(ctx, o)
		return true
	}
	o, err := f.metadata.readIn(ctx, in, c.path)
	if err != nil {
		return f.fail(ctx, in.path, l, err)
	}
	f.noteSuccess(ctx, in)
	isIn, emit := c.isIn(&o, l.entry.at), f.outlet.emit
	if behind := o.ReadAt.Sub(l.entry.received); !isIn && c.version > 0 && behind >= o.Lag {
		f.status.noteLag(ctx, behind, o.Lag)
	}
	switch {
	case l.isRotation:
		emit = f.outlet.emitPolled
	case l.entry.received.Sub(l.entry.at) > maxLate:
	case isIn && c.explains(&o):
		o.attribute(&l.entry, c)
	case c.version > 0 && o.Version > c.version:
		// Another write has followed that of the line, so the state is newer than the line.
		o.PolledBefore = l.entry.at.Add(-maxLineDelay)
	}
	emit(ctx, o)
	return isIn || f.isLast(l)
}

func (f *follower) noteSuccess(ctx context.Context, in engineMount) {
	f.status.noteSuccess(ctx, auditedPaths)
	f.status.noteSuccess(ctx, auditedIn(in.path))
}

// fail records an error. It returns false if the path needs another look.
func (f *follower) fail(ctx context.Context, mount string, l *look, err error) (done bool) {
	switch {
	case l.isRotation:
		return true // The next poll reads the role, and reports the failure.
	case final(err):
		f.status.noteNamedFailure(ctx, f.status.audited, auditedIn(mount), err)
		return true
	}
	f.status.noteFailure(ctx, auditedPaths, err)
	if down(err) { // An outage uses up no tries: after it, the store may answer badly, or lag behind, for a while.
		l.due = f.now().Add(l.backoff.Step())
		return false
	}
	return f.isLast(l)
}

// isLast counts a look, and schedules the next one. After too many it returns true, and leaves the path to the poller: unreadable paths must not take
// the room of others.
func (f *follower) isLast(l *look) bool {
	if l.tries++; l.tries < maxTries {
		l.due = f.now().Add(l.backoff.Step())
		return false
	}
	if !l.isRotation {
		f.polls.wake()
	}
	return true
}
