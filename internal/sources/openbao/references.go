package openbao

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// referenceReader reads the paths of a store that something references.
type referenceReader struct {
	origin  origin
	list    func(ctx context.Context) ([]Reference, error)
	bulk    *bulkReader
	catalog catalog
	outlet  *outlet
	now     func() time.Time
}

// readAll reads the referenced paths, other than those in mounts that were read as a whole. References to a path that the token may not
// see, or that has no metadata, do not affect readiness.
func (r *referenceReader) readAll(ctx context.Context, whole map[mountName]bool) error {
	byMount, err := r.byMount(ctx)
	if err != nil {
		return err
	}
	r.bulk.silence.begin()
	var first error
	for name, paths := range r.located(ctx, byMount) {
		if whole[name] {
			continue
		}
		in := engineMount{namespace: name.namespace, path: name.mount}
		began := r.now()
		err := r.readMount(ctx, in, paths)
		switch {
		case err == nil:
			r.outlet.polled.complete(name, began)
		case !r.bulk.tolerate(err):
			first = err
		}
		r.bulk.settle(ctx, in, err)
	}
	return first
}

func (r *referenceReader) readMount(ctx context.Context, in engineMount, paths []string) error {
	expected := r.catalog.paths(in.namespace, in.path)
	return r.bulk.forWhole(ctx, paths, func(path string) error {
		o, err := r.bulk.metadataReader.read(ctx, events.StorePath{Store: r.origin.store, Namespace: in.namespace, Mount: in.path, Path: path})
		if err == nil && (o.State != Gone || slices.Contains(expected, path)) {
			r.outlet.emit(ctx, o)
		}
		return err
	})
}

// byMount returns the referenced paths of the store, sorted, each once. It leaves out those that cannot be observed.
func (r *referenceReader) byMount(ctx context.Context) (map[mountName][]string, error) {
	references, err := r.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing references: %w", err)
	}
	byMount := map[mountName][]string{}
	for _, reference := range references {
		path := reference.Path
		path.Store = r.origin.store
		if slices.Contains(r.origin.servers, reference.Server) && r.outlet.canName(ctx, path) {
			name := mountName{path.Namespace, path.Mount}
			byMount[name] = append(byMount[name], path.Path)
		}
	}
	sortPaths(byMount)
	return byMount, nil
}

// located returns the paths by the mounts that the store has. References spell a mount as their SecretStore does: without its path, the mount is
// taken to be the first segment, and without its namespace, that may be a part of the path. Paths for which there is no mount stay as they are.
func (r *referenceReader) located(ctx context.Context, byMount map[mountName][]string) map[mountName][]string {
	located := make(map[mountName][]string, len(byMount))
	answers := true
	for name, paths := range byMount {
		for _, path := range paths {
			at, inside := name, path
			if answers {
				in, rest, err := r.bulk.metadataReader.mounts.locate(ctx, name.namespace, name.mount+"/"+path)
				answers = err == nil || final(err)
				if err == nil && rest != "" {
					at, inside = mountName{in.namespace, in.path}, rest
				}
			}
			located[at] = append(located[at], inside)
		}
	}
	sortPaths(located)
	return located
}

// sortPaths sorts the paths of each mount and removes repeated ones.
func sortPaths(byMount map[mountName][]string) {
	for name, paths := range byMount {
		slices.Sort(paths)
		byMount[name] = slices.Compact(paths)
	}
}

// sharedReferences lists references once for all stores that are polled at about the same time. It is safe for concurrent use.
type sharedReferences struct {
	read func(ctx context.Context) ([]Reference, error)
	now  func() time.Time

	lock chan struct{} // has one element while the fields below are in use
	last []Reference
	at   time.Time // when last was read; zero: never
}

func newSharedReferences(read func(context.Context) ([]Reference, error), now func() time.Time) *sharedReferences {
	return &sharedReferences{read: read, now: now, lock: make(chan struct{}, 1)}
}

// list returns the references as they were at most age ago. The caller must not change them.
func (s *sharedReferences) list(ctx context.Context, age time.Duration) ([]Reference, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	began := s.now()
	if !s.at.IsZero() && began.Sub(s.at) < age {
		return s.last, nil
	}
	listed, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	s.last, s.at = listed, began
	return listed, nil
}
