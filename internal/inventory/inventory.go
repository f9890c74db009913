package inventory

import (
	"context"
	"log/slog"
	"sync"
	"time"

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
	Changes  Changes
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
	// Lists tracks the first lists. Other packages may add theirs before Run is called.
	Lists *kube.FirstLists

	options Options
	scopes  []string
	// outside is the field selector that leaves out what is in ignored namespaces.
	outside string

	mu sync.Mutex
	// pollers are those of the workloads that may not be watched, or could not when that was last tried.
	pollers map[*poller]struct{}
}

// New returns an Inventory that knows nothing yet.
func New(options Options) *Inventory {
	index, lists := newIndex(options), kube.NewFirstLists()
	i := &Inventory{
		Index: index, Namespaces: newNamespaces(options.Clients.Typed, options.Log, lists, index), Lists: lists,
		options: options, scopes: kube.Listed(options.Namespaces), outside: kube.Outside(options.IgnoreNamespaces),
		pollers: make(map[*poller]struct{}),
	}
	for _, namespace := range i.scopes {
		for _, kind := range options.Kinds {
			lists.Expect(kindScope(kind, namespace))
		}
		if options.ReadNamespaces {
			lists.Expect(namespaceScope(namespace))
		}
	}
	return i
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

// Scopes returns the namespaces whose workloads are listed, one by one, or only metav1.NamespaceAll.
func (i *Inventory) Scopes() []string { return i.scopes }
