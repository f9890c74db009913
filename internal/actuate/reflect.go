package actuate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// manifest grants the permissions on workloads.
const manifest = "deploy/base/rbac.yaml"

// reflectors keep the index equal to the API server.
type reflectors struct {
	client     kubernetes.Interface
	kinds      workload.Kinds
	namespaces []string
	index      *index
	log        *slog.Logger

	mu      sync.Mutex
	waiting map[string]error // "deployments in shop" -> why it is not listed yet; gone once it is
	done    chan struct{}
}

func newReflectors(
	client kubernetes.Interface, namespaces []string, kinds workload.Kinds, index *index, log *slog.Logger,
) *reflectors {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	r := &reflectors{
		client: client, kinds: kinds, namespaces: namespaces, index: index, log: log,
		waiting: make(map[string]error), done: make(chan struct{}),
	}
	for _, kind := range kinds {
		for _, namespace := range namespaces {
			r.waiting[place(kind, namespace)] = nil
		}
	}
	return r
}

func place(k workload.Kind, namespace string) string { return kube.Scope(k.Resource, namespace) }

// expect has readiness wait for the first list of another resource too. Call it before run.
func (r *reflectors) expect(where string) { r.waiting[where] = nil }

// run reflects until the context is done.
func (r *reflectors) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, kind := range r.kinds {
		for _, namespace := range r.namespaces {
			reflector := r.reflector(kind, namespace)
			running.Go(func() { reflector.RunWithContext(ctx) })
		}
	}
	running.Wait()
}

func (r *reflectors) reflector(k workload.Kind, namespace string) *cache.Reflector {
	client, where := k.Objects(workload.Clients{Typed: r.client}, namespace), place(k, namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, options)
			r.denied(ctx, where, kube.MissingPermission(where, manifest, err))
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := client.Watch(ctx, options)
			r.denied(ctx, where, kube.MissingPermission(where, manifest, err))
			return events, err
		},
	}
	store := &kindStore{index: r.index, kind: k, namespace: namespace, synced: func() { r.listed(where) }}
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, r.client), k.Example, store,
		cache.ReflectorOptions{Name: where, TypeDescription: k.Name})
}

// denied takes note of the missing permission to list a resource, if err is one.
func (r *reflectors) denied(ctx context.Context, where string, err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	if _, waiting := r.waiting[where]; waiting {
		r.waiting[where] = err
	}
	r.mu.Unlock()
	r.log.ErrorContext(ctx, "permission missing", "resource", where, "err", err)
}

func (r *reflectors) listed(where string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, waiting := r.waiting[where]; !waiting {
		return // a list after the first
	}
	delete(r.waiting, where)
	if len(r.waiting) == 0 {
		close(r.done)
	}
}

// ready returns nil when everything was listed once; else it says what is missing.
func (r *reflectors) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for where, err := range r.waiting {
		if err != nil {
			return err
		}
		return fmt.Errorf("the first list of %s is not complete", where)
	}
	return nil
}

// wait blocks until everything was listed once. It returns false if the context ended first.
func (r *reflectors) wait(ctx context.Context) bool {
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return false
	}
}
