package sources

import (
	"errors"
	"sync"
	"sync/atomic"
)

// readiness is what keeps the watcher from being ready. It is safe for concurrent use.
type readiness struct {
	complete atomic.Bool
	denied   sync.Map // resource -> error
}

// deny records that a resource may not be listed or watched.
func (r *readiness) deny(resource string, err error) { r.denied.Store(resource, err) }

// problem returns nil once every source has been seen, and otherwise an error that names what is missing.
func (r *readiness) problem() error {
	if r.complete.Load() {
		return nil
	}
	problem := errors.New("the first list of the sources is not complete")
	r.denied.Range(func(_, err any) bool {
		problem = err.(error)
		return false
	})
	return problem
}
