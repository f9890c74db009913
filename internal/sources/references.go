package sources

import (
	"context"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// pageSize is the number of objects that are listed at a time.
const pageSize = 500

// maxReferences is the maximum number of paths that the ExternalSecrets of one namespace make the watcher poll. Each costs a request, even if it does
// not exist, and one ExternalSecret can name more than ten thousand.
const maxReferences = 2000

// references finds the paths that ExternalSecrets read. Its methods must not be called concurrently.
type references struct {
	client     dynamic.Interface
	namespaces []string
	ignored    []string
	log        *slog.Logger
	excessive  map[string]bool // the namespaces that exceeded maxReferences in the last list
}

// list lists the paths that ExternalSecrets read. It asks the API server each time, about as often as one store is polled by reference, and keeps no
// path between calls. It omits patterns, which cannot be polled, and paths beyond maxReferences.
func (r *references) list(ctx context.Context) ([]openbao.Reference, error) {
	stores := make(map[types.NamespacedName]*externalsecret.Store)
	addStore := func(obj *unstructured.Unstructured) {
		store := externalsecret.ReadStore(obj)
		stores[types.NamespacedName{Namespace: store.Namespace, Name: store.Name}] = store
	}
	if err := r.each(ctx, externalsecret.ClusterSecretStores, metav1.NamespaceAll, addStore); err != nil {
		return nil, err
	}
	var all []openbao.Reference
	distinct, excessive := make(map[string]map[openbao.Reference]bool), make(map[string]bool)
	addReferences := func(obj *unstructured.Unstructured) {
		namespace := obj.GetNamespace()
		if distinct[namespace] == nil {
			distinct[namespace] = make(map[openbao.Reference]bool)
		}
		own := distinct[namespace]
		for _, place := range externalsecret.Read(obj).Places(func(name types.NamespacedName) *externalsecret.Store { return stores[name] }) {
			switch reference := (openbao.Reference{Server: place.Server, Path: place.Path}); {
			case place.Below || own[reference]:
			case len(own) >= maxReferences:
				excessive[namespace] = true
			default:
				own[reference] = true
				all = append(all, reference)
			}
		}
	}
	for _, namespace := range r.namespaces {
		if err := r.each(ctx, externalsecret.SecretStores, namespace, addStore); err != nil {
			return nil, err
		}
		if err := r.each(ctx, externalsecret.ExternalSecrets, namespace, addReferences); err != nil {
			return nil, err
		}
	}
	for namespace := range excessive {
		if !r.excessive[namespace] {
			r.log.WarnContext(ctx, "a namespace references too many paths; not polling the others", "namespace", namespace, "limit", maxReferences)
		}
	}
	r.excessive = excessive
	return all, nil
}

// each calls fn for each object of a kind. A kind that is not installed has none.
func (r *references) each(ctx context.Context, resource schema.GroupVersionResource, namespace string, fn func(*unstructured.Unstructured)) error {
	client := r.client.Resource(resource).Namespace(namespace)
	options := metav1.ListOptions{Limit: pageSize}
	if !externalsecret.IsCluster(resource) {
		options.FieldSelector = kube.Outside(r.ignored)
	}
	for {
		page, err := client.List(ctx, options)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for i := range page.Items {
			fn(&page.Items[i])
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}
