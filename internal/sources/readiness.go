package sources

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/kube"
)

// readiness contains the reasons why the watcher is not ready. It is safe for concurrent use.
type readiness struct {
	complete atomic.Bool
	denied   sync.Map     // resource -> error: the permissions that are missing
	failed   atomic.Int64 // when an informer failed last, in nanoseconds since 1970
}

// watchRetry is longer than the pause of an informer between two failures.
const watchRetry = 5 * time.Minute

// isWatching reports whether every informer receives changes.
func (r *readiness) isWatching(now time.Time) bool {
	return now.UnixNano()-r.failed.Load() > int64(watchRetry)
}

// listed records that a resource was listed, so its permission exists.
func (r *readiness) listed(resource string) { r.denied.Delete(resource) }

// problem returns an error that names a missing permission or list, or nil once every source has been seen.
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

// watchErrors handles the errors of the requests of informers.
type watchErrors struct {
	readiness *readiness
	now       func() time.Time
	log       *slog.Logger
}

// requestCheck handles the error of a request to list or watch, which may be nil. If it returns an error, nothing more is requested.
type requestCheck func(ctx context.Context, verb string, err error) error

// of returns the check for a resource, which returns the refusal of a list. A list follows each watch that streams one and fails. Manifest grants the
// permissions on the resource, and state is the installation state of a custom kind, or nil.
func (w *watchErrors) of(resource, manifest string, state *installState) requestCheck {
	return func(ctx context.Context, verb string, err error) error {
		if !isTrouble(ctx, verb, err) {
			return nil
		}
		if state != nil && apierrors.IsNotFound(err) {
			// A kind that is not installed has no changes to miss.
			state.troubled.Store(true)
			if state.absent.CompareAndSwap(false, true) {
				w.log.WarnContext(ctx, "kind of sources no longer installed", "resource", resource)
			}
			return err
		}
		w.readiness.failed.Store(w.now().UnixNano())
		if verb == "watch" {
			return nil
		}
		missing := kube.MissingPermission(resource, manifest, err)
		if state != nil {
			state.denied.Store(missing != nil)
			state.troubled.Store(true)
		}
		if missing != nil {
			w.readiness.denied.Store(resource, missing)
			w.log.ErrorContext(ctx, "permission missing", "resource", resource, "err", missing)
		}
		return missing
	}
}

// isTrouble reports whether an error, which may be nil, shows that something is wrong. An API server that cannot stream lists calls such a request
// invalid.
func isTrouble(ctx context.Context, verb string, err error) bool {
	return err != nil && ctx.Err() == nil && (verb != "watch" || !apierrors.IsInvalid(err))
}
