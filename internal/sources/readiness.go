package sources

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// readiness is what keeps the watcher from being ready. It is safe for concurrent use.
type readiness struct {
	complete atomic.Bool
	denied   sync.Map     // resource -> error
	failed   atomic.Int64 // when an informer failed last, in nanoseconds since 1970
}

// watchRetry is longer than an informer waits between two failures.
const watchRetry = 5 * time.Minute

// fail records that an informer failed to list or watch at the given time. The informer retries.
func (r *readiness) fail(now time.Time) { r.failed.Store(now.UnixNano()) }

// isWatching reports whether every informer receives changes.
func (r *readiness) isWatching(now time.Time) bool {
	return now.UnixNano()-r.failed.Load() > int64(watchRetry)
}

// deny records that the permission to list or watch a resource is missing.
func (r *readiness) deny(resource string, err error) { r.denied.Store(resource, err) }

// listed records that a resource was listed, so that its permission is not missing any more.
func (r *readiness) listed(resource string) { r.denied.Delete(resource) }

// problem returns nil once every source has been seen, and otherwise an error that names what is missing.
func (r *readiness) problem() error {
	if r.complete.Load() {
		return nil
	}
	problem := errors.New("still listing the sources for the first time")
	r.denied.Range(func(_, err any) bool {
		problem = err.(error)
		return false
	})
	return problem
}
