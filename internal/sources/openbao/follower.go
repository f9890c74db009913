package openbao

import (
	"context"
	"strings"
	"time"
)

// follower looks at the paths that the audit log names, and at static roles that are to be rotated. What it reads is what it observes: a line only
// says where to look, and who made the change.
type follower struct {
	looks    *looks
	metadata *metadataReader
	outlet   *outlet
	status   *status
	polls    pollRequests
	now      func() time.Time
}

// run looks until ctx is done, and then once more at the paths that still wait: their lines were accepted, and that of a write in KV v1 is all that
// shows it.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-f.looks.added:
		case <-time.After(f.looks.untilDue(f.now())):
		}
		f.lookAtDue(ctx, f.now())
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	f.lookAtDue(last, f.now().Add(time.Minute)) // No line is put off for longer.
}

// lookAtDue looks at the paths that are due at a time, a few at once.
func (f *follower) lookAtDue(ctx context.Context, at time.Time) {
	due := f.looks.take(at)
	inParallel(len(due), func(i int) {
		if done := f.look(ctx, &due[i]); !done && !f.looks.putBack(due[i]) {
			f.polls.ask()
		}
	})
}

// look looks at a path and observes what it reads. It returns false if the path is to be looked at again: until what is read is as new as the line.
func (f *follower) look(ctx context.Context, l *look) (done bool) {
	in, err := f.metadata.mounts.find(ctx, l.entry.namespace, l.entry.path)
	switch {
	case err != nil && final(err) && !l.wasPutOff: // The mount, or its namespace, may be newer than the mount table.
		l.wasPutOff, l.due = true, f.now().Add(maxNoMountAge)
		if f.looks.len() < maxSpare {
			return false
		}
		f.polls.ask()
		return true
	case err != nil:
		mount, _, _ := strings.Cut(l.entry.path, "/")
		return f.fail(ctx, mount, l, err)
	}
	c, ok := judge(&l.entry, in)
	switch {
	case !ok:
		return true
	case in.isPlain():
		f.noteSuccess(ctx, in)
		f.outlet.emit(ctx, f.metadata.origin.ofEntry(&l.entry, in, c))
		return true
	}
	o, err := f.metadata.readIn(ctx, in, c.path)
	if err != nil {
		return f.fail(ctx, in.path, l, err)
	}
	f.noteSuccess(ctx, in)
	isIn := c.isIn(&o, l.entry.at)
	switch {
	case l.isRotation || l.entry.isLate():
	case isIn && c.explains(&o):
		o.attribute(&l.entry, c)
	default:
		// The secret existed when the line was written, so a state that began later is new.
		o.PolledBefore = l.entry.at.Add(-maxLineDelay)
	}
	f.outlet.emit(ctx, o)
	return isIn || f.isLast(l)
}

func (f *follower) noteSuccess(ctx context.Context, in engineMount) {
	f.status.noteSuccess(ctx, auditedPaths)
	f.status.noteSuccess(ctx, auditedIn(in.path))
}

// fail records an error. It returns false if the path is to be looked at again.
func (f *follower) fail(ctx context.Context, mount string, l *look, err error) (done bool) {
	switch {
	case l.isRotation:
		return true // The next poll reads the role, and reports the failure.
	case final(err):
		f.status.noteNamedFailure(ctx, f.status.audited, auditedIn(mount), err)
		return true
	}
	f.status.noteFailure(ctx, auditedPaths, err)
	if down(err) { // A store that is back may still answer badly, or lag behind, for a while. So this does not count.
		l.due = f.now().Add(l.backoff.Step())
		return false
	}
	return f.isLast(l)
}

// isLast counts a look, and puts off the next one. After too many it returns true, and leaves the path to the poller: paths that can never be read
// must not take the room of others.
func (f *follower) isLast(l *look) bool {
	if l.tries++; l.tries < maxTries {
		l.due = f.now().Add(l.backoff.Step())
		return false
	}
	if !l.isRotation {
		f.polls.ask()
	}
	return true
}
