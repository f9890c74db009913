package openbao

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const (
	// hintsSize is the maximum number of paths that wait to be read.
	hintsSize = 1024
	// maxUnlocated is how many of these paths may wait for an unknown mount: whoever can send lines can invent mounts.
	maxUnlocated = hintsSize / 4
	// maxTries is how many times a path is read if the store answers with an error that a retry may fix. That takes about six minutes.
	maxTries = 20
)

// follower reads the paths that the audit log hints at. Hints that arrive while it reads are read together.
type follower struct {
	hints          <-chan hint
	origin         origin
	metadataReader *metadataReader
	mounts         *mountTable
	catalog        catalog
	outlet         *outlet
	status         *status
	polls          pollRequests
	now            func() time.Time
}

// run reads until ctx is done.
func (f *follower) run(ctx context.Context) {
	var waiting []hint
	for ctx.Err() == nil {
		incoming := f.hints
		if len(waiting) >= hintsSize {
			incoming = nil
		}
		select {
		case <-ctx.Done():
		case h := <-incoming:
			waiting = append(waiting, h)
			for range min(len(incoming), hintsSize-len(waiting)) {
				waiting = append(waiting, <-incoming)
			}
		case <-time.After(f.untilDue(waiting)):
		}
		waiting = f.readDue(ctx, waiting)
	}
}

// untilDue returns the time until the first hint is due.
func (f *follower) untilDue(waiting []hint) time.Duration {
	next := time.Hour
	for i := range waiting {
		next = min(next, waiting[i].due.Sub(f.now()))
	}
	return max(next, 0)
}

// readDue reads the paths that are due, each once. It returns the hints that are not due yet or must be retried.
func (f *follower) readDue(ctx context.Context, waiting []hint) []hint {
	var later []hint
	var paths []events.StorePath
	now, due := f.now(), map[events.StorePath][]hint{}
	unlocated := 0
	for _, h := range waiting {
		if h.due.After(now) {
			later = append(later, h)
			if !h.isLocated() {
				unlocated++
			}
			continue
		}
		readable, err := f.locate(ctx, &h, unlocated < maxUnlocated)
		switch path := h.meaning.path; {
		case err != nil:
			later = append(later, h)
			unlocated++
		case readable:
			if due[path] == nil {
				paths = append(paths, path)
			}
			due[path] = append(due[path], h)
		}
	}
	again := make([][]hint, len(paths))
	inParallel(len(paths), func(i int) { again[i] = f.readHinted(ctx, paths[i], due[paths[i]]) })
	for _, hints := range again {
		for _, h := range hints {
			later = append(later, h.delayed(f.now()))
		}
	}
	return later
}

// locate finds the mount of a hint, which determines its meaning. It returns false if there is nothing to read. It returns an error if the mount
// cannot be found yet, and sets when the hint is due again. If wait is true, a hint whose mount may be newer than the mount table is delayed until
// the table is requested again.
func (f *follower) locate(ctx context.Context, h *hint, wait bool) (readable bool, err error) {
	if h.isLocated() {
		return true, nil
	}
	again, outdated := f.mounts.outdated(h.entry.namespace, h.entry.received)
	in, err := f.mounts.find(ctx, h.entry.namespace, h.entry.path)
	switch {
	case errors.Is(err, errNoMount) && outdated && wait:
		h.due = again
		return false, err
	case err != nil:
		err = f.fail(ctx, guessMount(h.entry), h.tries, err)
		*h = h.delayed(f.now())
		return false, err
	}
	c, ok := judge(h.entry, in.path, in.version)
	switch {
	case !ok:
		return false, nil
	case c.complete && c.version == 0:
		// In KV v1, only the value could be read.
		f.outlet.emit(ctx, f.origin.ofEntry(h.entry, c))
		return false, nil
	}
	c.path.Store = f.origin.store
	h.meaning = c
	return true, nil
}

// readHinted reads a path and observes it, attributed to the last hint that explains its state. It returns the hints for which the path must be
// read again. Whoever can send lines can send hints that never come true, so these do not delay others.
func (f *follower) readHinted(ctx context.Context, path events.StorePath, hints []hint) (again []hint) {
	o, err := f.metadataReader.read(ctx, path)
	if err != nil {
		latest := slices.MinFunc(hints, func(a, b hint) int { return cmp.Compare(a.tries, b.tries) })
		if f.fail(ctx, path.Mount, latest.tries, err) == nil {
			return nil
		}
		return slices.DeleteFunc(hints, func(h hint) bool { return isExhausted(h.tries, err) })
	}
	f.status.noteSuccess(ctx, auditHints)
	f.status.noteSuccess(ctx, hintsOf(path.Mount))
	var latest *entry
	for i := range hints {
		if !hints[i].accepts(&o) {
			again = append(again, hints[i])
			continue
		}
		latest = &hints[i].entry
		if hints[i].explains(&o) {
			o.attribute(*latest, hints[i].meaning)
		}
	}
	if latest == nil || o.State == Gone && f.catalog.isNew(path) {
		// If the path never existed, its deletion succeeds, too.
		return again
	}
	o.Received = latest.received
	if o.At.IsZero() && o.Operation != "" {
		o.At = latest.at
	}
	f.outlet.emit(ctx, o)
	return again
}

// fail records an error, and returns it if a retry may fix it. After too many tries it leaves the path to the poller, unless the whole store is
// down: hints that can never be answered must not take the room of others.
func (f *follower) fail(ctx context.Context, mount string, tries int, err error) error {
	switch {
	case final(err):
		f.status.noteHintFailure(ctx, mount, err)
		return nil
	case isExhausted(tries, err):
		f.status.noteHintFailure(ctx, mount, err)
		f.polls.ask()
		return nil
	}
	f.status.noteFailure(ctx, auditHints, err)
	return err
}

// isExhausted reports whether an error at a try, counted from 0, is the last one.
func isExhausted(tries int, err error) bool { return tries+1 >= maxTries && !down(err) }
