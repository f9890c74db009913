package sources

import (
	"context"
	"fmt"

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

// references finds the paths that ExternalSecrets read.
type references struct {
	client     dynamic.Interface
	namespaces []string
	// ignored has the namespaces to leave out.
	ignored []string
}

// list lists the paths that ExternalSecrets read. It asks the API server each time, about as often as one store is polled by reference, and keeps
// nothing between calls. Patterns are left out, because they are not paths that could be polled.
func (r *references) list(ctx context.Context) ([]openbao.Reference, error) {
	stores := make(map[types.NamespacedName]*externalsecret.Store)
	addStore := func(obj *unstructured.Unstructured) {
		store := externalsecret.ReadStore(obj)
		stores[types.NamespacedName{Namespace: store.Namespace, Name: store.Name}] = store
	}
	find := func(name types.NamespacedName) *externalsecret.Store { return stores[name] }
	if err := r.each(ctx, externalsecret.ClusterSecretStores, metav1.NamespaceAll, addStore); err != nil {
		return nil, err
	}
	var references []openbao.Reference
	for _, namespace := range r.namespaces {
		if err := r.each(ctx, externalsecret.SecretStores, namespace, addStore); err != nil {
			return nil, err
		}
		err := r.each(ctx, externalsecret.ExternalSecrets, namespace, func(obj *unstructured.Unstructured) {
			for _, place := range externalsecret.Read(obj).Places(find) {
				if !place.Below {
					references = append(references, openbao.Reference{Server: place.Server, Path: place.Path})
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return references, nil
}

// each calls fn for each object of a kind. A kind that is not installed has no objects.
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
