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

// observe returns a function that reads a secret or role of a mount and observes it.
func (b *bulkReader) observe(ctx context.Context, in engineMount) func(path string) error {
	return func(path string) error {
		o, err := b.metadataReader.readIn(ctx, in, path)
		if err == nil {
			b.outlet.emit(ctx, o)
		}
		return err
	}
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

// silence notices that the store has stopped answering while a mount, or what is referenced, is polled. The rest then fails without requests: each
// may take until its timeout, and there may be thousands. A store that answers 503 is not silent: it may have locked only one namespace.
type silence struct {
	mu    sync.Mutex
	inRow int
	err   error
}

// begin forgets what was polled before: some secrets of a mount may never be answered, and those of others are.
func (s *silence) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inRow, s.err = 0, nil
}

// note records how a request ended.
func (s *silence) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || !down(err) || code(err) != 0 {
		s.inRow = 0
		return
	}
	s.inRow, s.err = s.inRow+1, err
}

// lasts returns the last error if as many requests in a row were not answered as are made at once.
func (s *silence) lasts() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inRow < concurrency {
		return nil
	}
	return s.err
}

// concurrency is the number of concurrent requests to a store, for the poller and for the follower each.
const concurrency = 4

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
