package inventory

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// Options say what an Inventory knows.
type Options struct {
	Clients workload.Clients
	Kinds   workload.Kinds
	// Reading is how a workload is read from its object.
	Reading workload.Reading
	// Namespaces are those whose workloads are known. Empty means all.
	Namespaces []string
	// IgnoreNamespaces are namespaces to ignore when Namespaces is empty. The API server filters them out. Empty means none.
	IgnoreNamespaces []string
	// ReadNamespaces also reads the annotations of the namespaces. Without it, namespaces say nothing. Default false.
	ReadNamespaces bool
	// Reloader makes up for a missing permission to watch workloads by listing them again and again. Default false.
	Reloader bool
	// Changed is called after a workload, or what its namespace says, has changed or gone. It must not block.
	Changed func(workload.Key)
	// Relinked is called after a workload may have come to want other sources. It must not block.
	Relinked func(workload.Key)
	// Met is called with each workload of a kind that was not served until now. It must not block.
	Met func(*workload.Workload)
	Log *slog.Logger
	Now func() time.Time
}

// Inventory keeps what is known of the workloads equal to the API server. Make one with New.
type Inventory struct {
	// Index has the workloads.
	Index *Index
	// Namespaces has what their namespaces say.
	Namespaces *Namespaces
	// Lists tracks the first lists, and may be told of those of others before Run is called.
	Lists *kube.FirstLists

	reflectors *reflectors
	// scopes are the namespaces whose annotations are read. None means that none are.
	scopes []string
}

// New returns an Inventory that knows nothing yet.
func New(options Options) *Inventory {
	index, lists := newIndex(options), kube.NewFirstLists()
	i := &Inventory{
		Index: index, Namespaces: newNamespaces(options.Clients.Typed, options.Log, lists, index), Lists: lists,
		reflectors: newReflectors(options, index, lists),
	}
	if options.ReadNamespaces {
		i.scopes = i.Scopes()
	}
	for _, name := range i.scopes {
		lists.Expect(namespaceScope(name))
	}
	return i
}

// Run keeps everything equal to the API server until the context is done. A request that fails is made again, with backoff.
func (i *Inventory) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { i.reflectors.run(ctx) })
	for _, name := range i.scopes {
		running.Go(func() { i.Namespaces.run(ctx, name) })
	}
	running.Wait()
}

// Wait blocks until everything was listed once. It returns false if the context ended first.
func (i *Inventory) Wait(ctx context.Context) bool {
	select {
	case <-i.Lists.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// Look is called when a source has changed: the workloads of its namespace that may not be watched are listed soon. It does not block.
func (i *Inventory) Look(source events.Source) { i.reflectors.look(source) }

// Scopes returns the namespaces whose workloads are listed, one by one, or only metav1.NamespaceAll.
func (i *Inventory) Scopes() []string { return i.reflectors.scopes }
