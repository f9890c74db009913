package forcesync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	// apiRetry is how often to check whether External Secrets Operator has been installed.
	apiRetry = time.Minute
	// oldVersion is the API version that External Secrets Operator served before 0.16.
	oldVersion = "v1beta1"
	// manifest grants the permissions that a Watch needs.
	manifest = "deploy/components/secret-stores"
)

// WatchOptions configures a Watch.
type WatchOptions struct {
	Client dynamic.Interface
	// Namespaces lists the namespaces whose ExternalSecrets are watched. metav1.NamespaceAll means all namespaces.
	Namespaces []string
	// Ignored lists namespaces whose objects are left out.
	Ignored []string
	Log     *slog.Logger
	// Listed is called when a resource has been listed, or cannot be because its CRD is not installed.
	Listed func(resource string)
	// Denied is called when a permission is missing.
	Denied func(ctx context.Context, resource string, err error)
}

// Watch keeps an Index in sync with the API server. External Secrets Operator may be installed at any time.
type Watch struct {
	options   WatchOptions
	index     *Index
	resources []resource
}

// NewWatch returns a Watch of the ExternalSecrets, their owners and their stores.
func NewWatch(options WatchOptions, index *Index) *Watch {
	return &Watch{options: options, index: index, resources: watched(options.Namespaces)}
}

// Resources lists what is watched, by the names that Listed and Denied are called with.
func (w *Watch) Resources() []string {
	names := make([]string, 0, len(w.resources))
	for _, r := range w.resources {
		names = append(names, r.String())
	}
	return names
}

// Run watches until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, r := range w.resources {
		running.Go(func() {
			if w.await(ctx, r) {
				w.watch(ctx, r)
			}
		})
	}
	running.Wait()
}

// await waits until the resource is installed. It reports false if ctx ended first.
func (w *Watch) await(ctx context.Context, r resource) bool {
	return kube.AwaitInstalled(ctx, w.client(r).List, apiRetry, func() {
		if w.isOld(ctx, r) {
			w.options.Log.WarnContext(ctx, "external secrets api too old, nothing is synced; retrying",
				"resource", r.String(), "served", oldVersion, "want", r.Version, "retry_in", apiRetry)
		} else {
			w.options.Log.InfoContext(ctx, "external secrets api not installed; retrying", "resource", r.String(), "retry_in", apiRetry)
		}
		w.options.Listed(r.String()) // there is nothing to list
	})
}

// isOld reports whether the resource is served in oldVersion, which means that the operator is too old.
func (w *Watch) isOld(ctx context.Context, r resource) bool {
	r.Version = oldVersion
	_, err := w.client(r).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

// watch runs the informer of a resource.
func (w *Watch) watch(ctx context.Context, r resource) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(w.listWatch(r), w.options.Client),
		ObjectType:    &unstructured.Unstructured{},
		Transform: func(obj any) (any, error) {
			if object, ok := obj.(*unstructured.Unstructured); ok {
				return r.read(object), nil
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
		w.options.Listed(r.String())
	case <-ctx.Done():
	}
}

// listWatch lists and watches a resource, and reports a missing permission.
func (w *Watch) listWatch(r resource) *cache.ListWatch {
	client, fields := w.client(r), ""
	if !externalsecret.IsCluster(r.GroupVersionResource) {
		fields = kube.Outside(w.options.Ignored)
	}
	check := func(ctx context.Context, err error) {
		if missing := kube.MissingPermission(r.String(), manifest, err); missing != nil {
			w.options.Denied(ctx, r.String(), missing)
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = fields
			list, err := client.List(ctx, options)
			check(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields
			events, err := client.Watch(ctx, options)
			check(ctx, err)
			return events, err
		},
	}
}

func (w *Watch) client(r resource) dynamic.ResourceInterface {
	return w.options.Client.Resource(r.GroupVersionResource).Namespace(r.namespace)
}
