package forcesync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
)

const (
	apiRetry    = time.Minute                       // interval between checks whether External Secrets Operator is installed
	manifest    = "deploy/components/secret-stores" // the manifest that grants the permissions
	maxProblems = 1000                              // logged characters about one ExternalSecret, whose author could write any amount
)

// Watch keeps an Index in sync with the API server. External Secrets Operator may be installed at any time. Call Expect before Run.
type Watch struct {
	Index      *Index
	Client     dynamic.Interface
	Namespaces []string         // namespaces to watch; metav1.NamespaceAll means all
	Ignored    []string         // namespaces to ignore
	Lists      *kube.FirstLists // tracks the first list of each resource; one whose CRD is not installed counts as listed
	Log        *slog.Logger
	resources  []*resource
}

// resource is a resource in a namespace, or in all of them. It implements kube.Sink.
type resource struct {
	*Watch
	schema.GroupVersionResource
	client dynamic.ResourceInterface
	where  string                                 // its name in messages
	seen   map[types.NamespacedName]metav1.Object // the objects in the API server so far
}

// Expect makes Lists wait for the ExternalSecrets, their owners and their stores.
func (w *Watch) Expect() {
	all := []string{metav1.NamespaceAll}
	for gvr, namespaces := range map[schema.GroupVersionResource][]string{
		externalsecret.ClusterSecretStores: all, externalsecret.ClusterExternalSecrets: all,
		externalsecret.SecretStores: w.Namespaces, externalsecret.ExternalSecrets: w.Namespaces,
	} {
		for _, namespace := range namespaces {
			r := &resource{Watch: w, GroupVersionResource: gvr, where: kube.Scope(gvr.Resource, namespace)}
			r.client, r.seen = w.Client.Resource(gvr).Namespace(namespace), make(map[types.NamespacedName]metav1.Object)
			w.resources = append(w.resources, r)
			w.Lists.Expect(r.where)
		}
	}
}

// Run watches until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, r := range w.resources {
		running.Go(func() { r.reflect(ctx) })
	}
	running.Wait()
}

func (r *resource) reflect(ctx context.Context) {
	reflector := kube.Reflector[*unstructured.UnstructuredList]{
		Resource: r.client, Client: r.Client, Where: r.where, Example: &unstructured.Unstructured{}, Store: kube.StoreOf[metav1.Object](ctx, r),
	}
	if !externalsecret.IsCluster(r.GroupVersionResource) {
		reflector.Fields = kube.Outside(r.Ignored)
	}
	if !kube.AwaitInstalled(ctx, r.client.List, apiRetry, func() {
		r.Log.InfoContext(ctx, "external secrets api not installed; retrying", "resource", r.where, "version", r.Version, "retry_in", apiRetry)
		r.Lists.Listed(r.where)
	}) {
		return
	}
	_ = reflector.Run(ctx, func(ctx context.Context, _ string, err error) error {
		r.Lists.Check(ctx, r.Log, r.where, manifest, err)
		return nil
	})
}

func (r *resource) Reduce(object runtime.Object) (metav1.Object, bool) {
	obj, ok := object.(*unstructured.Unstructured)
	switch {
	case !ok:
		return nil, false
	case r.GroupVersionResource == externalsecret.ExternalSecrets:
		return externalsecret.Read(obj), true
	case r.GroupVersionResource == externalsecret.ClusterExternalSecrets:
		return externalsecret.ReadCluster(obj), true
	}
	return externalsecret.ReadStore(obj), true
}

// Put logs the unreadable parts of an ExternalSecret, unless they are the same as before.
func (r *resource) Put(ctx context.Context, obj metav1.Object) {
	if text := problemsOf(obj); text != "" && text != problemsOf(r.seen[nameOf(obj)]) {
		r.Log.WarnContext(ctx, "cannot read part of an externalsecret",
			"externalsecret", obj.GetName(), "namespace", obj.GetNamespace(), "err", text)
	}
	r.seen[nameOf(obj)] = obj
	r.Index.put(obj, false)
}

func problemsOf(obj metav1.Object) string {
	if es, ok := obj.(*externalsecret.ExternalSecret); ok && len(es.Problems) > 0 {
		return fmt.Sprintf("%.*s", maxProblems, errors.Join(es.Problems...))
	}
	return ""
}

func (r *resource) Drop(_ context.Context, obj metav1.Object) {
	delete(r.seen, nameOf(obj))
	r.Index.put(obj, true)
}

func (r *resource) Replace(ctx context.Context, objects []metav1.Object, _ string) {
	listed := make(map[types.NamespacedName]bool, len(objects))
	for _, obj := range objects {
		listed[nameOf(obj)] = true
		r.Put(ctx, obj)
	}
	for name, obj := range r.seen {
		if !listed[name] {
			r.Drop(ctx, obj)
		}
	}
	r.Lists.Listed(r.where)
}
