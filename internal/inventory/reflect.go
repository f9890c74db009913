package inventory

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// reflectors keep the index equal to the API server.
type reflectors struct {
	clients    workload.Clients
	kinds      workload.Kinds
	namespaces []string
	// outside is the field selector that leaves out what is in ignored namespaces.
	outside string
	index   *Index
	log     *slog.Logger
	now     func() time.Time

	// reloader says that workloads that may not be watched are listed again and again.
	reloader bool

	mu sync.Mutex
	// pollers are those of the workloads that may not be watched, or could not when that was last tried.
	pollers map[*poller]struct{}
	// unwatchable has the resources for which it was logged that they may not be watched.
	unwatchable map[string]bool
	lists       *kube.FirstLists
}

func newReflectors(options Options, index *Index) *reflectors {
	namespaces := kube.Listed(options.Namespaces)
	r := &reflectors{
		clients: options.Clients, kinds: options.Kinds, namespaces: namespaces, outside: kube.Outside(options.IgnoreNamespaces),
		index: index, reloader: options.Reloader, log: options.Log, now: options.Now,
		pollers: make(map[*poller]struct{}), unwatchable: make(map[string]bool),
		lists: kube.NewFirstLists(),
	}
	for _, kind := range r.kinds {
		for _, namespace := range namespaces {
			r.lists.Expect(kindScope(kind, namespace))
		}
	}
	return r
}

// kindScope returns how messages and readiness name a kind in a namespace, or in all of them.
func kindScope(k workload.Kind, namespace string) string { return kube.Scope(k.Resource, namespace) }

// run reflects until the context is done.
func (r *reflectors) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, kind := range r.kinds {
		for _, namespace := range r.namespaces {
			running.Go(func() { r.reflect(ctx, kind, namespace) })
		}
	}
	running.Wait()
}

// reflect reflects a kind in a namespace until the context is done.
func (r *reflectors) reflect(ctx context.Context, k workload.Kind, namespace string) {
	store := &kindStore{Index: r.index, kind: k, namespace: namespace, synced: func() { r.lists.Listed(kindScope(k, namespace)) }}
	if k.Component == "" {
		r.keep(ctx, k, store, func() {})
		return
	}
	for r.awaitInstalled(ctx, k, namespace) {
		installed, remove := context.WithCancel(ctx)
		r.keep(installed, k, store, remove)
		remove()
		r.awaitAgain(ctx, k, store)
	}
}

// keep keeps a store equal to the API server until the context is done. It calls removed when the API server no longer serves the kind.
func (r *reflectors) keep(ctx context.Context, k workload.Kind, store *kindStore, removed func()) {
	where := kindScope(k, store.namespace)
	check := func(ctx context.Context, err error) {
		r.denied(ctx, where, kube.MissingPermission(where, manifestOf(k), err))
		if apierrors.IsNotFound(err) {
			removed()
		}
	}
	var p *poller
	defer func() { r.dismiss(p) }()
	for {
		watching, refused := context.WithCancel(ctx)
		r.reflector(k, store, check, refused).RunWithContext(watching)
		refused()
		if ctx.Err() != nil {
			return
		}
		if p == nil {
			p = r.poller(k, store, removed)
		}
		polling, end := context.WithTimeout(ctx, watchAgain)
		p.run(polling)
		end()
	}
}

// lister returns what lists the workloads of a kind, except those in ignored namespaces.
func (r *reflectors) lister(k workload.Kind) lister {
	return func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		options.FieldSelector = r.outside
		return k.Objects(r.clients, namespace).List(ctx, options)
	}
}

// reflector returns what reflects a kind in a namespace. It calls check with the result of each request, and refused when a watch is refused that
// it may do without.
func (r *reflectors) reflector(k workload.Kind, store *kindStore, check func(context.Context, error), refused func()) *cache.Reflector {
	client, read, where := k.Objects(r.clients, store.namespace), r.lister(k), kindScope(k, store.namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := read(ctx, store.namespace, options)
			check(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = r.outside
			events, err := client.Watch(ctx, options)
			if ended := r.unwatched(ctx, where, err); ended != nil {
				refused()
				return ended, nil
			}
			check(ctx, err)
			return events, err
		},
	}
	var from any = r.clients.Typed
	if k.Component != "" {
		from = r.clients.Dynamic
	}
	options := cache.ReflectorOptions{Name: where, TypeDescription: k.Name}
	if r.reloader {
		return cache.NewReflectorWithOptions(listThenWatch{source}, k.Example, store, options)
	}
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, from), k.Example, store, options)
}

// denied records the missing permission to list a resource, if err says so.
func (r *reflectors) denied(ctx context.Context, where string, err error) {
	if err == nil {
		return
	}
	r.lists.Deny(where, err)
	r.log.ErrorContext(ctx, "permission missing", "resource", where, "err", err)
}
