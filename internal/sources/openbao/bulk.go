package openbao

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
)

// bulkReader reads many paths of a mount. A path that the token may not read does not fail the others. It belongs to one goroutine, and
// polls one mount at a time.
type bulkReader struct {
	metadataReader *metadataReader
	outlet         *outlet
	status         *status
	// note records the failures to read a part of a mount.
	note func(ctx context.Context, subject string, errs ...error)
	// skipped has the errors that were tolerated in the mount since the last settle, the first of each kind.
	skipped []error
	silence silence
}

// readAll reads secrets or roles of a mount and observes those that exist. It returns their paths.
func (b *bulkReader) readAll(ctx context.Context, in engineMount, paths []string) (map[string]bool, error) {
	var mu sync.Mutex
	live := make(map[string]bool, len(paths))
	err := b.forWhole(ctx, paths, func(path string) error {
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
func (b *bulkReader) forWhole(ctx context.Context, paths []string, f func(path string) error) error {
	errs := b.callForEach(ctx, paths, f)
	if len(errs) > 0 && !slices.Contains(errs, nil) {
		return errs[0]
	}
	return b.tolerateAll(errs)
}

// forEach calls f for paths of a mount, a few at a time. It returns an error if one call failed in a way that a retry may fix.
func (b *bulkReader) forEach(ctx context.Context, paths []string, f func(path string) error) error {
	return b.tolerateAll(b.callForEach(ctx, paths, f))
}

// callForEach calls f for each path, a few at a time, and returns the results. If the store has stopped answering, it does not call f any more.
func (b *bulkReader) callForEach(ctx context.Context, paths []string, f func(path string) error) []error {
	errs := make([]error, len(paths))
	inParallel(len(paths), func(i int) {
		if errs[i] = cmp.Or(ctx.Err(), b.silence.lasts()); errs[i] == nil {
			errs[i] = f(paths[i])
			b.silence.note(errs[i])
		}
	})
	return errs
}

// tolerateAll returns the first error that cannot be tolerated.
func (b *bulkReader) tolerateAll(errs []error) error {
	for _, err := range errs {
		if err != nil && !b.tolerate(err) {
			return err
		}
	}
	return nil
}

// tolerate reports whether the error concerns only a part of the mount that the token may not read. If so, it remembers the error for settle.
func (b *bulkReader) tolerate(err error) bool {
	if !final(err) {
		return false
	}
	if !hasKindOf(b.skipped, err) {
		b.skipped = append(b.skipped, err)
	}
	return true
}

// settle ends the poll of a mount, which returned err. It records the tolerated errors, or that no part of the mount was left out.
func (b *bulkReader) settle(ctx context.Context, in engineMount, err error) {
	skipped := b.skipped
	b.skipped = nil
	switch {
	case len(skipped) > 0:
		b.note(ctx, partOf(in), skipped...)
	case err == nil:
		b.status.noteSuccess(ctx, partOf(in))
	}
}

// oneSegment escapes the path of a mount for use as one segment of another.
var oneSegment = strings.NewReplacer("%", "%25", "/", "%2F")

// partOf returns the subject of failures to read a part of a mount. No two mounts have the same.
func partOf(in engineMount) string {
	return "part of " + childNamespace(in.namespace, oneSegment.Replace(in.path))
}
