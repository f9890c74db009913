package openbao

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// readReferences reads the referenced paths outside the mounts that were read as a whole. A path that the token may not see, or without metadata,
// does not fail a poll, unless the store refused most of the paths.
func (p *poller) readReferences(ctx context.Context, whole map[mountName]bool) error {
	byMount, err := p.referencedByMount(ctx)
	if err != nil {
		return err
	}
	p.unanswered.Store(0)
	var failed error
	var all tally
	for name, paths := range byMount {
		if whole[name] {
			continue
		}
		known, began := p.known(name), p.options.Now()
		errs := p.readEach(ctx, paths, func(path string) error {
			return p.readReference(ctx, name, path, known.Has(path))
		})
		for _, err := range errs {
			if !errors.Is(err, errNoMount) { // Anyone can invent mounts.
				all.add(err)
			}
		}
		var skipped skips
		err := skipped.rest(errs)
		switch {
		case err != nil:
			failed = err
		case slices.Contains(errs, nil):
			p.outlet.notePoll(name, began)
		}
		switch part := partOf(name); {
		case len(skipped.errs) > 0:
			p.status.noteNamedFailure(ctx, p.status.referenced, part, skipped.errs...)
		case err == nil:
			p.status.noteSuccess(ctx, part)
		}
	}
	return cmp.Or(failed, all.most())
}

// readReference observes a path. A path without a secret counts only if the secret was known.
func (p *poller) readReference(ctx context.Context, name mountName, path string, isKnown bool) error {
	in, err := p.metadata.mounts.find(ctx, name.namespace, name.mount)
	if err == nil && in.path != name.mount {
		err = fmt.Errorf("%s: %w", name.mount, errNoMount)
	}
	if err != nil {
		return err
	}
	o, err := p.metadata.readIn(ctx, in, path)
	if err == nil && (o.State != Gone || isKnown) {
		p.outlet.emitPolled(ctx, o)
	}
	return err
}

// referencedByMount returns the referenced paths of the store by mount, sorted and without duplicates. It omits those that cannot be observed.
// References name a mount as their SecretStore does: without its path, the mount is the first segment, and without its namespace, that may be a part
// of the path. Paths without an existing mount stay as they are.
func (p *poller) referencedByMount(ctx context.Context) (map[mountName][]string, error) {
	references, err := p.references.list(ctx, p.config.interval/2)
	if err != nil {
		return nil, fmt.Errorf("listing references: %w", err)
	}
	byMount := map[mountName][]string{}
	located := map[events.StorePath]bool{}
	answers := true
	for _, reference := range references {
		path := reference.Path
		path.Store = p.config.Name
		if located[path] || !slices.Contains(p.config.servers, reference.Server) || !p.outlet.canName(ctx, path) {
			continue
		}
		located[path] = true
		name, inside := mountName{path.Namespace, path.Mount}, path.Path
		if answers {
			in, rest, err := p.metadata.mounts.locate(ctx, path.Namespace, path.Mount+"/"+path.Path, maxMountAge)
			answers = err == nil || final(err)
			if err == nil && rest != "" {
				name, inside = in.name(), rest
			}
		}
		byMount[name] = append(byMount[name], inside)
	}
	for name, paths := range byMount {
		slices.Sort(paths)
		byMount[name] = slices.Compact(paths)
	}
	return byMount, nil
}

// sharedReferences lists references once for all stores that are polled at about the same time. It is safe for concurrent use.
type sharedReferences struct {
	options *Options

	mu   sync.Mutex // held while the references are listed
	last []Reference
	at   time.Time // when the references were last read; zero: never
}

// list returns references that were read at most age ago. The caller must not change them.
func (s *sharedReferences) list(ctx context.Context, age time.Duration) ([]Reference, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := s.options.Now()
	if !s.at.IsZero() && began.Sub(s.at) < age {
		return s.last, nil
	}
	listed, err := s.options.Referenced(ctx)
	if err != nil {
		return nil, err
	}
	s.last, s.at = listed, began
	return listed, nil
}
