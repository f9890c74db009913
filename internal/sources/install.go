package sources

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// install is what is known of whether a kind of custom resources is there to be watched.
type install struct {
	// absent says that the API server does not have the kind. Nobody waits for it then.
	absent atomic.Bool
	// troubled says that the kind could not be listed or watched at least once.
	troubled atomic.Bool
}

// runWhenInstalled runs the informers of a custom kind as soon as the API server has it.
func (w *Watcher) runWhenInstalled(ctx context.Context, kind source, running *sync.WaitGroup) {
	if !w.awaitInstalled(ctx, kind) {
		return
	}
	for _, informer := range w.stores[kind.kind] {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	w.installs[kind.kind].absent.Store(false)
	// The others are waited for, and what is gone of them is seen then. This one may come at any time.
	if cache.WaitForCacheSync(ctx.Done(), w.informersSynced(kind.kind)...) {
		w.sweep(kind.kind)
	}
}

// awaitInstalled asks for the kind until the API server has it. It is false when the context ended first. An API server that
// has another problem with the question may have the kind, and its informer will say what the problem is.
func (w *Watcher) awaitInstalled(ctx context.Context, kind source) bool {
	resource := w.options.Dynamic.Resource(kind.custom).Namespace(w.listed()[0])
	for said := false; ; said = true {
		_, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
		if !apierrors.IsNotFound(err) {
			return ctx.Err() == nil
		}
		w.installs[kind.kind].absent.Store(true)
		if !said {
			w.log.WarnContext(ctx, "a kind of sources is not installed; it is watched when it is",
				"resource", kind.resource, "version", kind.custom.Version, "retry", w.options.LookAgain)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(w.options.LookAgain):
		}
	}
}

// waitForWriters waits until it is known which ExternalSecrets there are, or that it cannot be known now: a change of a
// Secret that was made while nobody looked has one of them for its cause.
func (w *Watcher) waitForWriters(ctx context.Context) {
	state, watched := w.installs[events.KindExternalSecret]
	if !watched {
		return
	}
	cache.WaitForCacheSync(ctx.Done(), func() bool {
		return state.absent.Load() || state.troubled.Load() || w.hasSynced(events.KindExternalSecret)
	})
}
