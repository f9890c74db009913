package sources

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/kube"
)

// The manifests that grant the permission to list and watch.
const (
	grantBase                  = "deploy/base/rbac.yaml"
	grantCustom                = "deploy/components/secret-stores/watcher.yaml"
	grantSecretProviderClasses = "deploy/components/secret-provider-classes/watcher.yaml"
	grantNamespaces            = "deploy/components/namespace-selector/rbac.yaml"
)

// watchErrors handles the errors of informers.
type watchErrors struct {
	readiness *readiness
	now       func() time.Time
	log       *slog.Logger
}

// of returns the handler for a resource that the manifest grants. state is the installation state of a custom kind, or nil.
func (w *watchErrors) of(resource, manifest string, state *installState) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		missing := kube.MissingPermission(resource, manifest, err)
		if state != nil {
			state.denied.Store(missing != nil)
			state.troubled.Store(true)
		}
		if state != nil && apierrors.IsNotFound(err) {
			// There is nothing to miss of a kind that is not installed. The informer itself retries.
			if state.absent.CompareAndSwap(false, true) {
				w.log.WarnContext(ctx, "kind of sources no longer installed", "resource", resource)
			}
			return
		}
		w.readiness.fail(w.now())
		if missing != nil {
			w.readiness.deny(resource, missing)
			w.log.ErrorContext(ctx, "permission missing", "resource", resource, "err", missing)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}
