package sources

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// informerSet runs the informers of all kinds, and that of the namespaces.
type informerSet struct {
	kinds      []*kindInformers
	scope      scope
	dynamic    dynamic.Interface
	lookAgain  time.Duration
	errors     *watchErrors
	log        *slog.Logger
	lateListed func(kind events.Kind) // called when a custom kind was listed that may have been installed late
}

// start starts the informers. Those of a custom kind start as soon as the API server serves it.
func (s *informerSet) start(ctx context.Context, running *sync.WaitGroup) error {
	if err := s.scope.selected.start(ctx, running, s.errors.of(namespaceResource, grantNamespaces, nil)); err != nil {
		return err
	}
	for _, kind := range s.kinds {
		if kind.install == nil {
			kind.start(ctx, running)
			continue
		}
		running.Go(func() { s.startWhenInstalled(ctx, kind, running) })
	}
	return nil
}

func (s *informerSet) startWhenInstalled(ctx context.Context, kind *kindInformers, running *sync.WaitGroup) {
	resource := s.dynamic.Resource(kind.source.custom).Namespace(s.scope.listed()[0])
	installed := kube.AwaitInstalled(ctx, resource, s.lookAgain, func() {
		kind.install.absent.Store(true)
		s.log.WarnContext(ctx, "kind of sources not installed; waiting for it",
			"resource", kind.source.resource, "version", kind.source.custom.Version, "retry_in", s.lookAgain)
	})
	if !installed {
		return
	}
	kind.start(ctx, running)
	kind.install.absent.Store(false)
	// Run waits for the other kinds before it looks for deleted sources. This one may come at any time.
	if cache.WaitForCacheSync(ctx.Done(), kind.hasSynced) {
		s.lateListed(kind.source.kind)
	}
}

// waitForWriters blocks until the ExternalSecrets are listed, or cannot be listed now: one of them may have
// caused a change of a Secret that was made while the watcher was away.
func (s *informerSet) waitForWriters(ctx context.Context) {
	for _, kind := range s.kinds {
		if kind.source.kind == events.KindExternalSecret {
			cache.WaitForCacheSync(ctx.Done(), func() bool {
				return kind.isAbsent() || kind.install.troubled.Load() || kind.hasSynced()
			})
		}
	}
}

// waitForSync blocks until every informer has handed on its first list, but does not wait for kinds that are not installed.
// It returns false if ctx ended first.
func (s *informerSet) waitForSync(ctx context.Context) bool {
	synced := []cache.InformerSynced{s.scope.selected.hasSynced}
	for _, kind := range s.kinds {
		synced = append(synced, func() bool { return kind.isAbsent() || kind.hasSynced() })
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// hasListed reports whether the first list of a kind was handed on.
func (s *informerSet) hasListed(kind events.Kind) bool {
	return slices.ContainsFunc(s.kinds, func(k *kindInformers) bool { return k.source.kind == kind && k.hasSynced() })
}

// listed lists the kinds whose first list was handed on.
func (s *informerSet) listed() []events.Kind {
	var kinds []events.Kind
	for _, kind := range s.kinds {
		if kind.hasSynced() {
			kinds = append(kinds, kind.source.kind)
		}
	}
	return kinds
}
