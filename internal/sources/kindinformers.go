package sources

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// kindInformers are the informers of one kind, one for each listed namespace.
type kindInformers struct {
	source sourceKind
	each   []cache.SharedIndexInformer
	// install is nil for a kind that every API server has.
	install *installState
}

func (k *kindInformers) start(ctx context.Context, running *sync.WaitGroup) {
	for _, informer := range k.each {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
}

// hasSynced reports whether the first list of every namespace was handed on.
func (k *kindInformers) hasSynced() bool {
	for _, informer := range k.each {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// isAbsent reports whether the API server does not serve the kind.
func (k *kindInformers) isAbsent() bool { return k.install != nil && k.install.absent.Load() }
