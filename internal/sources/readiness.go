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

// of returns the check for a resource. It returns the refusal of a list, and that of any request for a custom kind that is not installed. A list
// follows each watch that streams one and fails. Manifest grants the permissions on the resource, and state is the installation state of a custom
// kind, or nil.
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
		missing := kube.MissingPermission(resource, manifest, err)
		if missing != nil {
			if _, known := w.readiness.denied.Swap(resource, missing); !known {
				w.log.ErrorContext(ctx, "permission missing", "resource", resource, "err", missing)
			}
		}
		if verb == "watch" {
			return nil
		}
		if state != nil {
			state.denied.Store(missing != nil)
			state.troubled.Store(true)
		}
		return missing
	}
}

// refusedMost bounds the delay until a kind is listed again whose list was refused.
const refusedMost = 30 * time.Second

// keep calls run again each time it returns an error, with backoff, until it returns nil or ctx is done.
func (w *watchErrors) keep(ctx context.Context, run func() error) {
	for pause := kube.DenialBackoff(refusedMost); ; {
		began := w.now()
		if run() == nil {
			return
		}
		if w.now().Sub(began) > watchRetry {
			pause = kube.DenialBackoff(refusedMost)
		}
		if !kube.Sleep(ctx, pause.Step()) {
			return
		}
	}
}

// isTrouble reports whether an error, which may be nil, shows that something is wrong. An API server that cannot stream lists calls such a request
// invalid.
func isTrouble(ctx context.Context, verb string, err error) bool {
	return err != nil && ctx.Err() == nil && (verb != "watch" || !apierrors.IsInvalid(err))
}
