package openbao

import (
	"context"
	"slices"
	"sync"
)

// bulkReader reads many paths of a mount. A path that the token may not read does not fail the others.
type bulkReader struct {
	metadataReader *metadataReader
	outlet         *outlet
	status         *status
}

// readAll reads secrets or roles of a mount and observes those that exist. It returns their paths.
func (b *bulkReader) readAll(ctx context.Context, in engineMount, paths []string) (map[string]bool, error) {
	var mu sync.Mutex
	live := make(map[string]bool, len(paths))
	err := b.forEach(ctx, in, paths, func(path string) error {
		o, err := b.metadataReader.readIn(ctx, in, path)
		if err != nil || o.State == Gone {
			return err
		}
		b.outlet.emit(ctx, o)
		mu.Lock()
		defer mu.Unlock()
		live[path] = true
		return nil
	})
	return live, err
}

// forEach calls f for each path of a mount, a few at a time. It returns an error if every path failed, or if one failed in a way that a
// retry may mend.
func (b *bulkReader) forEach(ctx context.Context, in engineMount, paths []string, f func(path string) error) error {
	errs := make([]error, len(paths))
	inParallel(len(paths), func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			errs[i] = f(paths[i])
		}
	})
	worked := slices.Contains(errs, nil)
	for _, err := range errs {
		if err != nil && (!worked || !b.tolerate(ctx, in, err)) {
			return err
		}
	}
	return nil
}

// tolerate reports whether the error only concerns a part of the mount that the token may not read, and records it.
func (b *bulkReader) tolerate(ctx context.Context, in engineMount, err error) bool {
	if !final(err) {
		return false
	}
	b.status.noteFailure(ctx, "part of "+in.path, err)
	return true
}
