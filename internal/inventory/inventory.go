package inventory

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// Options configure an Inventory.
type Options struct {
	Clients workload.Clients
	Kinds   workload.Kinds
	// Reading contains the settings for reading workloads.
	Reading workload.Reading
	// Namespaces are the namespaces of the workloads. Empty means all.
	Namespaces []string
	// IgnoreNamespaces are namespaces to ignore when Namespaces is empty. The API server filters them out. Empty means none.
	IgnoreNamespaces []string
	// ReadNamespaces also reads the annotations of namespaces. Without it, namespaces have no settings. Default false.
	ReadNamespaces bool
	// Reloader lists workloads periodically if the permission to watch them is missing. Default false.
	Reloader bool
	Changes  Changes
	// Met is called with each workload of a kind that was not served until now. It must not block.
	Met func(*workload.Workload)
	Log *slog.Logger
	Now func() time.Time
}

// Inventory keeps a copy of workloads and of the settings of namespaces in memory, in sync with the API server. Make one with New.
type Inventory struct {
	// Index contains the workloads.
	Index *Index
	// Namespaces contains the settings of namespaces.
	Namespaces *Namespaces
	// Lists tracks the first lists. Other packages may add theirs before Run.
	Lists *kube.FirstLists

	options Options
	scopes  []string
	// outside is the field selector that excludes ignored namespaces.
	outside string

	mu sync.Mutex
	// pollers are used for workloads that may not be watched according to the last attempt.
	pollers map[*poller]struct{}
}

// New returns an empty Inventory.
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

// Scopes returns the namespaces that are listed one by one, or only metav1.NamespaceAll.
func (i *Inventory) Scopes() []string { return i.scopes }
