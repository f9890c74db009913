package sources

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// informerSet runs the informers of all kinds and of the namespaces. It finds the sources that were deleted while no watcher ran.
type informerSet struct {
	kinds     []*kindInformers
	scope     scope
	cached    kinds.Cache
	ledger    *ledger
	pending   *pendingSources
	dynamic   dynamic.Interface
	lookAgain time.Duration
	errors    *watchErrors
	log       *slog.Logger
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

// follow starts the informers of a kind, and returns after their first list has been handled. No kind waits for another.
func (s *informerSet) follow(ctx context.Context, kind *kindInformers, running *sync.WaitGroup) {
	if kind.install != nil && !s.awaitInstalled(ctx, kind) {
		return
	}
	kind.start(ctx, running)
	if kind.install != nil {
		kind.install.absent.Store(false)
	}
	if cache.WaitForCacheSync(ctx.Done(), kind.hasSynced) {
		s.errors.readiness.listed(kind.listing.Name())
		s.sweep(kind.listing.Kind)
		kind.seen.Store(true)
	}
}

// awaitInstalled blocks until the API server serves a custom kind. It returns false if ctx ended first.
func (s *informerSet) awaitInstalled(ctx context.Context, kind *kindInformers) bool {
	resource := s.dynamic.Resource(kind.listing.Resource).Namespace(s.scope.listed()[0])
	return kube.AwaitInstalled(ctx, resource.List, s.lookAgain, func() {
		kind.install.absent.Store(true)
		s.log.WarnContext(ctx, "kind of sources not installed; waiting for it",
			"resource", kind.listing.Name(), "version", kind.listing.Resource.Version, "retry_in", s.lookAgain)
	})
}

// sweep queues the sources of a kind that exist on the stream but not in the cluster. A deleted namespace does not count as selected.
func (s *informerSet) sweep(kind events.Kind) {
	for _, source := range s.ledger.sources() {
		if source.Kind == kind && s.scope.lists(source.Namespace) && s.cached.Lookup(source) == nil {
			s.pending.add(source)
		}
	}
}

// waitForWriters blocks until the ExternalSecrets are listed or cannot be, as one may have changed a Secret while no watcher ran.
func (s *informerSet) waitForWriters(ctx context.Context) {
	for _, kind := range s.kinds {
		if kind.listing.Kind == events.KindExternalSecret {
			cache.WaitForCacheSync(ctx.Done(), func() bool {
				return kind.isAbsent() || kind.install.troubled.Load() || kind.hasSynced()
			})
		}
	}
}

// waitForSync blocks until the first list of every informer has been handled, except for custom kinds that are not installed or whose list fails. It
// returns false if ctx ended first.
func (s *informerSet) waitForSync(ctx context.Context) bool {
	synced := []cache.InformerSynced{s.scope.selected.hasSynced}
	for _, kind := range s.kinds {
		synced = append(synced, func() bool { return kind.seen.Load() || kind.isAbsent() || kind.isFailing() })
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// hasListed reports whether the first list of a kind has been handled.
func (s *informerSet) hasListed(kind events.Kind) bool {
	return slices.ContainsFunc(s.kinds, func(k *kindInformers) bool { return k.listing.Kind == kind && k.hasSynced() })
}

// watches reports whether this watcher publishes the events of a source, and has listed its kind.
func (s *informerSet) watches(source events.Source) bool {
	return source.Kind == events.KindOpenBao || s.hasListed(source.Kind) && s.scope.includes(source.Namespace)
}

// sees reports whether a source is in a store, or is an object in scope that this watcher has seen.
func (s *informerSet) sees(source events.Source) bool {
	return source.Kind == events.KindOpenBao || s.scope.includes(source.Namespace) && s.cached.Lookup(source) != nil
}

// version returns the resourceVersion that the cache of a kind in a namespace has reached. It is empty before the first list.
func (s *informerSet) version(kind events.Kind, namespace string) string {
	for _, k := range s.kinds {
		if k.listing.Kind != kind {
			continue
		}
		for i, listed := range s.scope.listed() {
			if listed == metav1.NamespaceAll || listed == namespace {
				// The last received object may not be in the cache yet. Without client-go's AtomicFIFO, only the informer has a version.
				return cmp.Or(k.each[i].GetIndexer().LastStoreSyncResourceVersion(), k.each[i].LastSyncResourceVersion())
			}
		}
	}
	return ""
}

// kindInformers contains the informers of one kind, one for each listed namespace.
type kindInformers struct {
	listing kinds.Listing
	each    []cache.SharedIndexInformer
	handled []cache.ResourceEventHandlerRegistration // of the handler with each informer
	install *installState                            // nil for a kind that every API server has
	// synced says that hasSynced was once true, which does not change any more. It saves a check of all namespaces for each source.
	synced atomic.Bool
	// seen says that the first list has been handled, and that the sources deleted before it have been found.
	seen atomic.Bool
}

// installState tracks whether the API server serves a custom kind.
type installState struct {
	absent   atomic.Bool // the API server does not serve the kind: nothing waits for it
	troubled atomic.Bool // a list or watch of the kind has failed
	denied   atomic.Bool // the last failure was a missing permission
}

func (k *kindInformers) start(ctx context.Context, running *sync.WaitGroup) {
	for _, informer := range k.each {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
}

// hasSynced reports whether the handler has received the first list of every namespace. The caches are full before it has.
func (k *kindInformers) hasSynced() bool {
	waits := func(handled cache.ResourceEventHandlerRegistration) bool { return !handled.HasSynced() }
	if !k.synced.Load() && !slices.ContainsFunc(k.handled, waits) {
		k.synced.Store(true)
	}
	return k.synced.Load()
}

func (k *kindInformers) isAbsent() bool { return k.install != nil && k.install.absent.Load() }

// isFailing reports whether the API server has failed to list a custom kind, for example because its conversion webhook is down. A missing permission
// does not count, because it takes an administrator to grant it.
func (k *kindInformers) isFailing() bool {
	return k.install != nil && k.install.troubled.Load() && !k.install.denied.Load()
}
