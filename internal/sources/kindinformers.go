package sources

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// kindInformers are the informers of one kind, one for each listed namespace.
type kindInformers struct {
	source sourceKind
	each   []cache.SharedIndexInformer
	// handled are the registrations of the handler with each of them.
	handled []cache.ResourceEventHandlerRegistration
	// install is nil for a kind that every API server has.
	install *installState
	// seen reports that the first list was handed on, and that what was deleted before it was found.
	seen atomic.Bool
}

func (k *kindInformers) start(ctx context.Context, running *sync.WaitGroup) {
	for _, informer := range k.each {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
}

// hasSynced reports whether the handler has had the first list of every namespace. An informer has synced before that: its
// cache is full, but the handler is still being called.
func (k *kindInformers) hasSynced() bool {
	for _, handled := range k.handled {
		if !handled.HasSynced() {
			return false
		}
	}
	return true
}

// isAbsent reports whether the API server does not serve the kind.
func (k *kindInformers) isAbsent() bool { return k.install != nil && k.install.absent.Load() }

// isFailing reports whether the API server has failed to list a custom kind, such as where the webhook that converts it is down. A missing
// permission is no such failure: an administrator has to grant it.
func (k *kindInformers) isFailing() bool {
	return k.install != nil && k.install.troubled.Load() && !k.install.denied.Load()
}

// version returns how far the cache of an informer is. What the informer has received last may not be in it yet.
func (k *kindInformers) version(i int) string {
	return cmp.Or(k.each[i].GetIndexer().LastStoreSyncResourceVersion(),
		k.each[i].LastSyncResourceVersion()) // client-go's AtomicFIFO is turned off.
}
