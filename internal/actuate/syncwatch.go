package actuate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// apiRetry is how often it is asked whether the API of External Secrets Operator is there, as long as it is not.
const apiRetry = time.Minute

// syncWatch keeps the syncIndex equal to the API server. The operator need not be installed, and may be at any time.
type syncWatch struct {
	client     dynamic.Interface
	index      *syncIndex
	reflectors *reflectors
	log        *slog.Logger
	watched    []watchedResource
}

// watchedResource is a resource in a namespace, or in all.
type watchedResource struct {
	schema.GroupVersionResource
	namespace string
	read      func(*unstructured.Unstructured) any
}

func newSyncWatch(options Options, index *syncIndex, reflectors *reflectors, log *slog.Logger) *syncWatch {
	w := &syncWatch{client: options.Dynamic, index: index, reflectors: reflectors, log: log}
	readStore := func(obj *unstructured.Unstructured) any { return externalsecret.ReadStore(obj) }
	for _, namespace := range reflectors.namespaces {
		w.watched = append(w.watched,
			watchedResource{externalsecret.ExternalSecrets, namespace, func(obj *unstructured.Unstructured) any { return externalsecret.Read(obj) }},
			watchedResource{externalsecret.SecretStores, namespace, readStore})
	}
	w.watched = append(w.watched,
		watchedResource{externalsecret.ClusterSecretStores, metav1.NamespaceAll, readStore},
		watchedResource{externalsecret.ClusterExternalSecrets, metav1.NamespaceAll, func(obj *unstructured.Unstructured) any { return externalsecret.ReadCluster(obj) }})
	for _, resource := range w.watched {
		reflectors.expect(resource.place())
	}
	return w
}

func (r watchedResource) place() string { return placeOf(r.Resource, r.namespace) }

// run watches until the context is done.
func (w *syncWatch) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, resource := range w.watched {
		running.Go(func() {
			if w.await(ctx, resource) {
				w.watch(ctx, resource)
			}
		})
	}
	running.Wait()
}

// await returns when the resource is there. It is false when the context ended first.
func (w *syncWatch) await(ctx context.Context, resource watchedResource) bool {
	said := false
	for {
		_, err := w.client.Resource(resource.GroupVersionResource).Namespace(resource.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if !apierrors.IsNotFound(err) {
			return ctx.Err() == nil // what else is wrong is told, and tried again, by the informer
		}
		if !said {
			said = true
			w.log.InfoContext(ctx, "the api of external secrets operator is not there; it is looked for again", "resource", resource.place(), "every", apiRetry)
		}
		// There is nothing to know, and nothing to wait for.
		w.reflectors.listed(resource.place())
		select {
		case <-ctx.Done():
			return false
		case <-time.After(apiRetry):
		}
	}
}

// watch runs the informer of a resource.
func (w *syncWatch) watch(ctx context.Context, resource watchedResource) {
	where := resource.place()
	client := w.client.Resource(resource.GroupVersionResource).Namespace(resource.namespace)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, options)
			w.reflectors.failed(ctx, where, "deploy/components/secret-stores", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := client.Watch(ctx, options)
			w.reflectors.failed(ctx, where, "deploy/components/secret-stores", err)
			return events, err
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, w.client),
		ObjectType:    &unstructured.Unstructured{},
		Transform: func(obj any) (any, error) {
			if object, ok := obj.(*unstructured.Unstructured); ok {
				return resource.read(object), nil
			}
			return obj, nil
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    w.index.put,
			UpdateFunc: func(_, obj any) { w.index.put(obj) },
			DeleteFunc: func(obj any) {
				if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = tombstone.Obj
				}
				w.index.drop(obj)
			},
		},
	})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.RunWithContext(ctx) })
	select {
	case <-informer.HasSyncedChecker().Done():
		w.reflectors.listed(where)
	case <-ctx.Done():
	}
}
