package openbao

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/keyturn/keyturn/internal/events"
)

// concurrency is the number of concurrent requests to a store, for the poller and for the follower each.
const concurrency = 4

// readMount reads everything in a mount, and what is known to have been there.
func (p *poller) readMount(ctx context.Context, in engineMount) error {
	p.unanswered.Store(0)
	began := p.options.Now()
	// These are determined before the mount is read, so that a secret created meanwhile does not look like one that vanished.
	missing := p.known(in.name())
	var skipped skips
	err := p.readPresent(ctx, in, missing, &skipped)
	if err == nil {
		// It is no error of the mount if the token may read none of these, because they are only a part of it.
		err = skipped.rest(p.readEach(ctx, slices.Collect(maps.Keys(missing)), p.observe(ctx, in)))
	}
	if err == nil {
		p.outlet.notePoll(in.name(), began)
	}
	switch part := partOf(in.name()); {
	case len(skipped.errs) > 0:
		p.status.noteFailure(ctx, part, skipped.errs...)
	case err == nil:
		p.status.noteSuccess(ctx, part)
	}
	return err
}

// readPresent reads what is in a mount, and removes it from missing.
func (p *poller) readPresent(ctx context.Context, in engineMount, missing pathSet, skipped *skips) error {
	switch {
	case in.isPlain():
		return fmt.Errorf("%s: %w", in.path, errUnversioned)
	case in.engine == events.EngineKV:
		return p.readSecrets(ctx, in, missing, skipped)
	case in.engine == events.EngineDatabase || in.engine == events.EngineLDAP:
		places := rolePathsOf(in.engine)
		return p.readListed(ctx, in, places.list, places.secret+"/", missing, skipped)
	}
	return fmt.Errorf("%s is of the engine %s: %w", in.path, in.engine, errEngine)
}

// observe returns a function that reads a secret or role of a mount and observes it.
func (p *poller) observe(ctx context.Context, in engineMount) func(path string) error {
	return func(path string) error {
		o, err := p.metadata.readIn(ctx, in, path)
		if err == nil {
			p.outlet.emit(ctx, o)
		}
		return err
	}
}

// readEach calls read for each path, a few at a time, and returns the results. It stops once the store has answered none of as many requests in a row
// as are made at once: each may take until its timeout, and there may be thousands.
func (p *poller) readEach(ctx context.Context, paths []string, read func(path string) error) []error {
	errs := make([]error, len(paths))
	inParallel(len(paths), func(i int) {
		switch {
		case ctx.Err() != nil:
			errs[i] = ctx.Err()
			return
		case p.unanswered.Load() >= concurrency:
			errs[i] = errSilent
			return
		}
		// A store that answers 503 is not silent: it may have locked only one namespace.
		if errs[i] = read(paths[i]); errs[i] != nil && down(errs[i]) && code(errs[i]) == 0 {
			p.unanswered.Add(1)
		} else {
			p.unanswered.Store(0)
		}
	})
	return errs
}

// pathSet has paths of a mount.
type pathSet map[string]struct{}

// known returns the paths of a mount that are known to exist. That iterates over every source, so an audit line must never cause it.
func (p *poller) known(in mountName) pathSet {
	paths := pathSet{}
	for _, path := range p.options.Known(p.config.Name, in.namespace, in.mount) {
		paths[path] = struct{}{}
	}
	return paths
}

// skips has the errors about parts of a mount that the token may not read, the first of each kind. They do not fail a poll.
type skips struct{ errs []error }

// tolerate adds the error if retrying is useless, and reports whether it did.
func (s *skips) tolerate(err error) bool {
	if !final(err) {
		return false
	}
	if !hasKindOf(s.errs, err) {
		s.errs = append(s.errs, err)
	}
	return true
}

// rest returns the first error that cannot be tolerated.
func (s *skips) rest(errs []error) error {
	for _, err := range errs {
		if err != nil && !s.tolerate(err) {
			return err
		}
	}
	return nil
}

// inParallel calls f for 0 to n-1, a few at a time, and waits for all of them.
func inParallel(n int, f func(i int)) {
	var group sync.WaitGroup
	indices := make(chan int)
	for range min(n, concurrency) {
		group.Go(func() {
			for i := range indices {
				f(i)
			}
		})
	}
	for i := range n {
		indices <- i
	}
	close(indices)
	group.Wait()
}
