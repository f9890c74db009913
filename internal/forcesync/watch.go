package forcesync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Expect is called with each resource before it is listed. Listed is called when it has been listed, or cannot be because its CRD is not
	// installed.
	Expect, Listed func(resource string)
	// Denied is called after each request. The error is nil if no permission is missing.
	Denied func(ctx context.Context, resource string, missing error)
}

// Watch keeps an Index in sync with the API server. External Secrets Operator may be installed at any time.
type Watch struct {
	options   WatchOptions
	index     *Index
	resources []resource
}

// resource is a resource in a namespace, or in all of them.
type resource struct {
	schema.GroupVersionResource
	namespace string
}

// NewWatch returns a Watch of the ExternalSecrets, their owners and their stores.
func NewWatch(options WatchOptions, index *Index) *Watch {
	resources := []resource{
		{externalsecret.ClusterSecretStores, metav1.NamespaceAll}, {externalsecret.ClusterExternalSecrets, metav1.NamespaceAll},
	}
	for _, namespace := range options.Namespaces {
		resources = append(resources, resource{externalsecret.ExternalSecrets, namespace}, resource{externalsecret.SecretStores, namespace})
	}
	for _, r := range resources {
		options.Expect(r.String())
	}
	return &Watch{options: options, index: index, resources: resources}
}

// String returns the resource as messages name it.
func (r resource) String() string { return kube.Scope(r.Resource, r.namespace) }

// read reduces an object to what the Index stores of it.
func (r resource) read(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	switch {
	case !ok:
		return obj, nil
	case r.GroupVersionResource == externalsecret.ExternalSecrets:
		return externalsecret.Read(object), nil
	case r.GroupVersionResource == externalsecret.ClusterExternalSecrets:
		return externalsecret.ReadCluster(object), nil
	}
	return externalsecret.ReadStore(object), nil
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
	fields := ""
	if !externalsecret.IsCluster(r.GroupVersionResource) {
		fields = kube.Outside(w.options.Ignored)
	}
	source := kube.ListWatch(w.client(r), fields, func(ctx context.Context, err error) {
		w.options.Denied(ctx, r.String(), kube.MissingPermission(r.String(), manifest, err))
	})
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(source, w.options.Client),
		ObjectType:    &unstructured.Unstructured{},
		Transform:     r.read,
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

func (w *Watch) client(r resource) dynamic.ResourceInterface {
	return w.options.Client.Resource(r.GroupVersionResource).Namespace(r.namespace)
}
