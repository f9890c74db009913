package sources

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// informerSet runs the informers of all kinds and of the namespaces.
type informerSet struct {
	kinds     []*kindInformers
	scope     scope
	dynamic   dynamic.Interface
	lookAgain time.Duration
	errors    *watchErrors
	log       *slog.Logger
	listed    func(kind events.Kind) // called for each kind once its first list was handed on
}

// start starts the informers. The informers of a custom kind start as soon as the API server serves it.
func (s *informerSet) start(ctx context.Context, running *sync.WaitGroup) error {
	if err := s.scope.selected.start(ctx, running, s.errors.of(namespaceResource, grantNamespaces, nil)); err != nil {
		return err
	}
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), s.scope.selected.hasSynced) {
			s.errors.readiness.listed(namespaceResource)
		}
	})
	for _, kind := range s.kinds {
		running.Go(func() { s.follow(ctx, kind, running) })
	}
	return nil
}

// follow starts the informers of a kind, and returns once their first list has been handled. No kind waits for another.
func (s *informerSet) follow(ctx context.Context, kind *kindInformers, running *sync.WaitGroup) {
	if kind.install != nil && !s.awaitInstalled(ctx, kind) {
		return
	}
	kind.start(ctx, running)
	if kind.install != nil {
		kind.install.absent.Store(false)
	}
	if cache.WaitForCacheSync(ctx.Done(), kind.hasSynced) {
		s.errors.readiness.listed(kind.source.resource)
		s.listed(kind.source.kind)
		kind.seen.Store(true)
	}
}

// awaitInstalled blocks until the API server serves a custom kind. It returns false if ctx ended first.
func (s *informerSet) awaitInstalled(ctx context.Context, kind *kindInformers) bool {
	resource := s.dynamic.Resource(kind.source.custom).Namespace(s.scope.listed()[0])
	return kube.AwaitInstalled(ctx, resource.List, s.lookAgain, func() {
		kind.install.absent.Store(true)
		s.log.WarnContext(ctx, "kind of sources not installed; waiting for it",
			"resource", kind.source.resource, "version", kind.source.custom.Version, "retry_in", s.lookAgain)
	})
}

// waitForWriters blocks until the ExternalSecrets are listed or cannot be listed now: one of them may have caused a change of a Secret while the
// watcher was down.
func (s *informerSet) waitForWriters(ctx context.Context) {
	for _, kind := range s.kinds {
		if kind.source.kind == events.KindExternalSecret {
			cache.WaitForCacheSync(ctx.Done(), func() bool {
				return kind.isAbsent() || kind.install.troubled.Load() || kind.hasSynced()
			})
		}
	}
}

// waitForSync blocks until the first list of every informer has been handled, but does not wait for custom kinds that are not installed or that the
// API server fails to list. It returns false if ctx ended first.
func (s *informerSet) waitForSync(ctx context.Context) bool {
	synced := []cache.InformerSynced{s.scope.selected.hasSynced}
	for _, kind := range s.kinds {
		synced = append(synced, func() bool { return kind.seen.Load() || kind.isAbsent() || kind.isFailing() })
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// hasListed reports whether the first list of a kind has been handled.
func (s *informerSet) hasListed(kind events.Kind) bool {
	return slices.ContainsFunc(s.kinds, func(k *kindInformers) bool { return k.source.kind == kind && k.hasSynced() })
}

// version returns the resourceVersion that the cache of a kind in a namespace has reached. It is empty if nothing was listed.
func (s *informerSet) version(kind events.Kind, namespace string) string {
	for _, k := range s.kinds {
		if k.source.kind != kind {
			continue
		}
		for i, listed := range s.scope.listed() {
			if listed == metav1.NamespaceAll || listed == namespace {
				return k.version(i)
			}
		}
	}
	return ""
}
