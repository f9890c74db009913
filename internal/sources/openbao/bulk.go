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
	err := b.forWhole(ctx, in, paths, func(path string) error {
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

// forWhole is forEach for the paths of a whole mount: if every path failed, it returns an error too.
func (b *bulkReader) forWhole(ctx context.Context, in engineMount, paths []string, f func(path string) error) error {
	errs := callForEach(ctx, paths, f)
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return errs[0]
	}
	return b.tolerateAll(ctx, in, errs)
}

// forEach calls f for paths of a mount, a few at a time. It returns an error if one failed in a way that a retry may mend.
func (b *bulkReader) forEach(ctx context.Context, in engineMount, paths []string, f func(path string) error) error {
	return b.tolerateAll(ctx, in, callForEach(ctx, paths, f))
}

// callForEach calls f for each path, a few at a time, and returns the results.
func callForEach(ctx context.Context, paths []string, f func(path string) error) []error {
	errs := make([]error, len(paths))
	inParallel(len(paths), func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			errs[i] = f(paths[i])
		}
	})
	return errs
}

// tolerateAll returns the first error that cannot be tolerated.
func (b *bulkReader) tolerateAll(ctx context.Context, in engineMount, errs []error) error {
	for _, err := range errs {
		if err != nil && !b.tolerate(ctx, in, err) {
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
