package openbao

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/keyturn/keyturn/internal/events"
)

// sweeper reads everything that is polled in a store. It belongs to one goroutine.
type sweeper struct {
	namespace  string // of the mounts in the configuration
	config     pollConfig
	client     *client
	mounts     *mountTable
	scanner    *scanner
	bulk       *bulkReader
	references *referenceReader // nil if nothing is polled by reference
	catalog    catalog
	outlet     *outlet
	status     *status
}

// mountName identifies a mount.
type mountName struct{ namespace, mount string }

// sweep reads everything that is polled. It returns false if something failed that a retry may fix.
func (s *sweeper) sweep(ctx context.Context) bool {
	ok := true
	whole := map[mountName]bool{}
	for _, group := range []struct {
		engine string
		names  []string
		read   func(context.Context, engineMount) error
	}{
		{events.EngineKV, s.config.Mounts, s.sweepSecrets},
		{events.EngineDatabase, s.config.DatabaseMounts, s.sweepRoles},
		{events.EngineLDAP, s.config.LDAPMounts, s.sweepRoles},
	} {
		for _, name := range group.names {
			in, err := s.mounts.named(ctx, s.namespace, name)
			if err == nil && in.engine != group.engine {
				err = fmt.Errorf("%s is %s, not %s: %w", name, in.engine, group.engine, errEngine)
			}
			if err == nil {
				whole[mountName{in.namespace, in.path}] = true
				err = s.poll(ctx, in, group.read)
			}
			ok = s.report(ctx, name, err) && ok
		}
	}
	if s.references != nil {
		ok = s.report(ctx, referencedPaths, s.references.readAll(ctx, whole)) && ok
	}
	return ok
}

// poll reads a mount. If it succeeds, it remembers when the read began.
func (s *sweeper) poll(ctx context.Context, in engineMount, read func(context.Context, engineMount) error) error {
	began := s.client.now()
	s.bulk.silence.begin()
	err := read(ctx, in)
	if err == nil {
		s.outlet.polled.complete(mountName{in.namespace, in.path}, began)
	}
	s.bulk.settle(ctx, in, err)
	return err
}

// report records the result of reading the subject. It returns false if a retry may fix the error.
func (s *sweeper) report(ctx context.Context, subject string, err error) bool {
	if err == nil {
		s.status.noteSuccess(ctx, subject)
		return true
	}
	s.status.noteFailure(ctx, subject, err)
	if errors.Is(err, errUnversioned) {
		return true
	}
	s.status.noteFailedPoll()
	return false
}

// sweepSecrets reads a KV v2 mount.
func (s *sweeper) sweepSecrets(ctx context.Context, in engineMount) error {
	if in.version != kvV2 {
		return fmt.Errorf("%s: %w", in.path, errUnversioned)
	}
	// The expected paths are determined before the mount is read, so that a secret created meanwhile does not look like one that vanished.
	expected := s.catalog.paths(in.namespace, in.path)
	found := map[string]bool{}
	err := s.scanner.scan(ctx, in, func(o Observation) {
		if o.State != Gone {
			found[o.Path.Path] = true
			s.outlet.emit(ctx, o)
		}
	})
	switch {
	case errors.Is(err, errNoScan):
		return s.readListed(ctx, in, "metadata", "", expected)
	case err != nil:
		return err
	}
	return s.readMissing(ctx, in, expected, found)
}

// sweepRoles reads the static roles of a mount.
func (s *sweeper) sweepRoles(ctx context.Context, in engineMount) error {
	places := rolePathsOf(in.engine)
	return s.readListed(ctx, in, places.list, places.secret+"/", s.catalog.paths(in.namespace, in.path))
}

// readListed reads what is listed below a path of a mount's API, and what was expected. The names that are listed have the prefix in paths.
func (s *sweeper) readListed(ctx context.Context, in engineMount, below, prefix string, expected []string) error {
	paths, err := walk(ctx, s.client, in, below, s.bulk.tolerate)
	if err != nil {
		return err
	}
	found := make(map[string]bool, len(paths))
	for i, name := range paths {
		paths[i] = prefix + name
		found[paths[i]] = true
	}
	if err := s.bulk.forWhole(ctx, paths, s.bulk.observe(ctx, in)); err != nil {
		return err
	}
	return s.readMissing(ctx, in, expected, found)
}

// readRoles reads static roles that should have been rotated. If the store does not answer, the remaining roles are left to the next poll, which
// also reports the failure.
func (s *sweeper) readRoles(ctx context.Context, roles []events.StorePath) {
	var down atomic.Bool
	inParallel(len(roles), func(i int) {
		if down.Load() || ctx.Err() != nil {
			return
		}
		o, err := s.bulk.metadataReader.read(ctx, roles[i])
		switch {
		case err == nil:
			s.outlet.emit(ctx, o)
		case !final(err):
			down.Store(true)
		}
	})
	if down.Load() {
		s.bulk.metadataReader.rotations.forget(s.client.now())
	}
}

// readMissing reads the paths that were expected and not found. Those that no longer exist are observed as Gone. It is no error of the whole mount
// if all of them are forbidden, because they are only a part of it.
func (s *sweeper) readMissing(ctx context.Context, in engineMount, expected []string, found map[string]bool) error {
	missing := slices.DeleteFunc(slices.Clone(expected), func(path string) bool { return found[path] })
	return s.bulk.forEach(ctx, missing, s.bulk.observe(ctx, in))
}

// catalog looks up which secrets of a store are known to exist.
type catalog struct {
	store string
	known func(store, namespace, mount string) []string // nil if nothing is known
}

// paths returns the known paths in a mount. That iterates over every source, so an audit line must never cause it.
func (c catalog) paths(namespace, mount string) []string {
	if c.known == nil {
		return nil
	}
	return c.known(c.store, namespace, mount)
}
