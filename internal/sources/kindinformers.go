package sources

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// kindInformers has the informers of one kind, one for each listed namespace.
type kindInformers struct {
	source sourceKind
	each   []cache.SharedIndexInformer
	// handled has the registration of the handler with each informer.
	handled []cache.ResourceEventHandlerRegistration
	// install is nil for a kind that every API server has.
	install *installState
	// synced reports that hasSynced was true once: then it stays so. It is asked about each source, and there may be many namespaces.
	synced atomic.Bool
	// seen reports that the first list has been handled, and that the sources deleted before it have been found.
	seen atomic.Bool
}

func (k *kindInformers) start(ctx context.Context, running *sync.WaitGroup) {
	for _, informer := range k.each {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
}

// hasSynced reports whether the handler has had the first list of every namespace. The informer itself has synced earlier: its cache is full, but
// the handler is still being called.
func (k *kindInformers) hasSynced() bool {
	if k.synced.Load() {
		return true
	}
	for _, handled := range k.handled {
		if !handled.HasSynced() {
			return false
		}
	}
	k.synced.Store(true)
	return true
}

// isAbsent reports whether the API server does not serve the kind.
func (k *kindInformers) isAbsent() bool { return k.install != nil && k.install.absent.Load() }

// isFailing reports whether the API server has failed to list a custom kind, for example because its conversion webhook is down. A missing
// permission does not count: an administrator has to grant it.
func (k *kindInformers) isFailing() bool {
	return k.install != nil && k.install.troubled.Load() && !k.install.denied.Load()
}

// version returns the resourceVersion that the cache of an informer has reached. What the informer received last may not be in the cache yet.
func (k *kindInformers) version(i int) string {
	return cmp.Or(k.each[i].GetIndexer().LastStoreSyncResourceVersion(),
		k.each[i].LastSyncResourceVersion()) // client-go's AtomicFIFO is turned off.
}
