package sources

import (
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

// add adds the informers of a kind in each of the listed namespaces.
func (s *informerSet) add(kind kinds.Listed, options *informerOptions) {
	made := &kindInformers{listing: kind.Listing()}
	if made.listing.IsCustom() {
		made.install = &installState{}
	}
	for _, namespace := range s.scope.listed() {
		one := newInformer(options, kind, namespace)
		made.each = append(made.each, one)
		s.cached[made.listing.Kind] = append(s.cached[made.listing.Kind], one.store)
	}
	s.kinds = append(s.kinds, made)
}

// start starts the informers. The informers of a custom kind start as soon as the API server serves it.
func (s *informerSet) start(ctx context.Context, running *sync.WaitGroup) {
	if selected := s.scope.selected; !selected.selector.Empty() {
		running.Go(func() { selected.run(ctx, s.errors) })
		running.Go(func() {
			if cache.WaitForCacheSync(ctx.Done(), selected.hasSynced) {
				s.errors.readiness.listed(namespaceResource)
			}
		})
	}
	for _, kind := range s.kinds {
		followed := sync.OnceFunc(func() { running.Go(func() { s.follow(ctx, kind) }) })
		for _, one := range kind.each {
			running.Go(func() { s.run(ctx, kind, one, followed) })
		}
	}
}

// run runs an informer until ctx is done. That of a custom kind runs only while the API server serves it. No kind waits for another. It calls begun
// when it begins.
func (s *informerSet) run(ctx context.Context, kind *kindInformers, one *informer, begun func()) {
	check := s.errors.of(kind.listing.Name(), kind.listing.Grant, kind.install)
	s.errors.keep(ctx, func() error {
		if kind.install != nil && !s.awaitInstalled(ctx, kind) {
			return nil
		}
		begun()
		return one.run(ctx, check)
	})
}

// follow waits until the first list of a kind has been handled.
func (s *informerSet) follow(ctx context.Context, kind *kindInformers) {
	if cache.WaitForCacheSync(ctx.Done(), kind.hasSynced) {
		s.errors.readiness.listed(kind.listing.Name())
		s.sweep(kind.listing.Kind)
		kind.seen.Store(true)
	}
}

// awaitInstalled blocks until the API server serves a custom kind. It returns false if ctx ended first.
func (s *informerSet) awaitInstalled(ctx context.Context, kind *kindInformers) bool {
	kind.install.asking.Lock() // One request is enough for all namespaces.
	defer kind.install.asking.Unlock()
	resource := s.dynamic.Resource(kind.listing.Resource).Namespace(s.scope.listed()[0])
	isInstalled := kube.AwaitInstalled(ctx, resource.List, s.lookAgain, func() {
		if kind.install.absent.CompareAndSwap(false, true) {
			s.log.WarnContext(ctx, "kind of sources not installed; waiting for it",
				"resource", kind.listing.Name(), "version", kind.listing.Resource.Version, "retry_in", s.lookAgain)
		}
	})
	if isInstalled {
		kind.install.absent.Store(false)
	}
	return isInstalled
}

// sweep queues the sources of a kind that exist on the stream but not in the cluster. A deleted namespace does not count as selected.
func (s *informerSet) sweep(kind events.Kind) {
	for _, source := range s.ledger.sources() {
		if source.Kind == kind && s.scope.lists(source.Namespace) && !s.cached.Has(source) {
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
	return source.Kind == events.KindOpenBao || s.scope.includes(source.Namespace) && s.cached.Has(source)
}

// version returns the resourceVersion that the cache of a kind in a namespace has reached. It is empty before the first list.
func (s *informerSet) version(kind events.Kind, namespace string) string {
	for _, k := range s.kinds {
		if k.listing.Kind != kind {
			continue
		}
		for _, one := range k.each {
			if version := one.version.Load(); version != nil && (one.namespace == metav1.NamespaceAll || one.namespace == namespace) {
				return *version
			}
		}
	}
	return ""
}

// kindInformers contains the informers of one kind, one for each listed namespace.
type kindInformers struct {
	listing kinds.Listing
	each    []*informer
	install *installState // nil for a kind that every API server has
	// synced says that hasSynced was once true, which does not change any more. It saves a check of all namespaces for each source.
	synced atomic.Bool
	// seen says that the first list has been handled, and that the sources deleted before it have been found.
	seen atomic.Bool
}

// installState tracks whether the API server serves a custom kind.
type installState struct {
	asking   sync.Mutex
	absent   atomic.Bool // the API server does not serve the kind: nothing waits for it
	troubled atomic.Bool // a list or watch of the kind has failed
	denied   atomic.Bool // the last failure was a missing permission
}

// hasSynced reports whether the handler has received the first list of every namespace. The caches are full before it has.
func (k *kindInformers) hasSynced() bool {
	if !k.synced.Load() && !slices.ContainsFunc(k.each, func(one *informer) bool { return !one.listed.Load() }) {
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
