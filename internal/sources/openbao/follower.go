package openbao

import (
	"context"
	"strings"
	"time"
)

// maxUnlocated is how many paths may wait when one in an unknown mount is put off: many lines may be about mounts that the token may not see.
const maxUnlocated = maxLooks / 4

// follower looks at the paths that the audit log names. What it reads is what it observes: a line only says where to look, and who made the change.
type follower struct {
	looks          *looks
	origin         origin
	metadataReader *metadataReader
	mounts         *mountTable
	outlet         *outlet
	status         *status
	polls          pollRequests
	now            func() time.Time
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
	f.lookAtDue(last, f.now().Add(time.Hour))
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
	again, outdated := f.mounts.outdated(l.entry.namespace, l.entry.received)
	in, err := f.mounts.find(ctx, l.entry.namespace, l.entry.path)
	switch {
	case err != nil && final(err) && outdated: // The mount, or its namespace, may be newer than the mount table.
		if l.due = again; f.looks.len() < maxUnlocated {
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
		f.outlet.emit(ctx, f.origin.ofEntry(&l.entry, in, c))
		return true
	}
	o, err := f.metadataReader.readIn(ctx, in, c.path)
	if err != nil {
		return f.fail(ctx, in.path, l, err)
	}
	f.noteSuccess(ctx, in)
	isIn := c.isIn(&o, l.entry.at)
	switch {
	case l.entry.isLate():
	case isIn && c.explains(&o):
		o.attribute(&l.entry, c)
	case c.version > 0 && o.Version > c.version:
		// The write of the line was followed by another one, so what was read is newer than the line.
		o.PolledBefore = l.entry.at.Add(-maxLineDelay)
	}
	f.outlet.emit(ctx, o)
	if isIn {
		return true
	}
	if l.isLast() {
		f.polls.ask()
		return true
	}
	l.tries++
	l.delay(f.now())
	return false
}

func (f *follower) noteSuccess(ctx context.Context, in engineMount) {
	f.status.noteSuccess(ctx, auditedPaths)
	f.status.noteSuccess(ctx, auditedIn(in.path))
}

// fail records an error. It returns false if the path is to be looked at again. After too many tries it leaves the path to the poller, unless the
// whole store is down: paths that can never be read must not take the room of others.
func (f *follower) fail(ctx context.Context, mount string, l *look, err error) (done bool) {
	switch {
	case final(err):
		f.status.noteAuditFailure(ctx, mount, err)
		return true
	case down(err): // A store that is back may still answer badly, or lag behind, for a while. So this does not count.
	case l.isLast():
		f.status.noteAuditFailure(ctx, mount, err)
		f.polls.ask()
		return true
	default:
		l.tries++
	}
	f.status.noteFailure(ctx, auditedPaths, err)
	l.delay(f.now())
	return false
}
