package sources

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/sources/openbao"
)

// pageSize is how many objects are listed at a time.
const pageSize = 500

// referencedPaths lists the paths that ExternalSecrets read. They are listed anew each time, which is as often as a store is
// polled by reference: nothing of them is kept. What is found by a pattern is no path that could be polled.
func (w *Watcher) referencedPaths(ctx context.Context) ([]openbao.Reference, error) {
	stores := make(map[types.NamespacedName]*externalsecret.Store)
	addStore := func(obj *unstructured.Unstructured) {
		store := externalsecret.ReadStore(obj)
		stores[types.NamespacedName{Namespace: store.Namespace, Name: store.Name}] = store
	}
	find := func(name types.NamespacedName) *externalsecret.Store { return stores[name] }
	if err := w.listCustom(ctx, externalsecret.ClusterSecretStores, metav1.NamespaceAll, addStore); err != nil {
		return nil, err
	}
	var references []openbao.Reference
	for _, namespace := range w.listed() {
		if err := w.listCustom(ctx, externalsecret.SecretStores, namespace, addStore); err != nil {
			return nil, err
		}
		err := w.listCustom(ctx, externalsecret.ExternalSecrets, namespace, func(obj *unstructured.Unstructured) {
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

// listCustom hands each object of a kind to fn. Of a kind that is not installed there are none.
func (w *Watcher) listCustom(ctx context.Context, resource schema.GroupVersionResource, namespace string, fn func(*unstructured.Unstructured)) error {
	client := w.options.Dynamic.Resource(resource).Namespace(namespace)
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
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
