package sources

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// listed are the namespaces that are listed and watched, one by one.
func (w *Watcher) listed() []string {
	if len(w.options.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return w.options.Namespaces
}

// startInformers starts one informer for each kind and namespace in scope, and the one of the namespaces.
func (w *Watcher) startInformers(ctx context.Context, running *sync.WaitGroup) error {
	for _, kind := range w.kinds {
		for _, namespace := range w.listed() {
			informer, err := w.newInformer(kind, namespace)
			if err != nil {
				return fmt.Errorf("making the informer of %s: %w", kind.resource, err)
			}
			w.stores[kind.kind] = append(w.stores[kind.kind], informer)
		}
	}
	// Only now: a handler may look into any of them.
	if err := w.namespaces.start(ctx, running, w.watchError(namespaceResource, nil)); err != nil {
		return err
	}
	for _, kind := range w.kinds {
		if kind.isCustom() {
			running.Go(func() { w.runWhenInstalled(ctx, kind, running) })
			continue
		}
		for _, informer := range w.stores[kind.kind] {
			running.Go(func() { informer.RunWithContext(ctx) })
		}
	}
	return nil
}

func (w *Watcher) newInformer(kind source, namespace string) (cache.SharedIndexInformer, error) {
	narrow := func(list *metav1.ListOptions) {
		if kind.options != nil {
			kind.options(list)
		}
		list.LabelSelector = w.options.Selector
	}
	informer, err := w.bareInformer(kind, namespace, narrow)
	if err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(w.watchError(kind.resource, w.installs[kind.kind])); err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			w.handle(obj, !initial && w.isNew(obj))
		},
		UpdateFunc: func(before, after any) {
			// A new resourceVersion alone says nothing about the content, but the same one says that it is the same.
			if b, ok := before.(*object); ok {
				if a, ok := after.(*object); ok && a.ResourceVersion == b.ResourceVersion {
					return
				}
			}
			w.handle(after, false)
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			w.handle(obj, false)
		},
	})
	return informer, err
}

// bareInformer makes an informer that reduces what it is told.
func (w *Watcher) bareInformer(kind source, namespace string, narrow func(*metav1.ListOptions)) (cache.SharedIndexInformer, error) {
	if !kind.isCustom() {
		return kind.informer(informers.NewSharedInformerFactoryWithOptions(w.options.Client, 0,
			informers.WithNamespace(namespace), informers.WithTransform(kind.transform(w.ring)), informers.WithTweakListOptions(narrow))), nil
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.options.Dynamic, kind.custom, namespace, 0, indexers, narrow).Informer()
	if err := informer.AddIndexers(kind.indexers); err != nil {
		return nil, err
	}
	return informer, informer.SetTransform(kind.transform(w.ring))
}

// isNew tells an object that was created from one that was there and came into scope by a label.
func (w *Watcher) isNew(obj any) bool {
	seen, ok := obj.(*object)
	return ok && (w.options.Selector == "" || seen.asCreated)
}

func (w *Watcher) handle(obj any, created bool) {
	if seen, ok := obj.(*object); ok {
		w.pending.add(seen.source, created)
	}
}

// watchError says once what is wrong, and what to do where a right is missing. The install is that of a custom kind, else
// nil.
func (w *Watcher) watchError(resource string, state *install) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, reflector *cache.Reflector, err error) {
		if state != nil {
			state.troubled.Store(true)
		}
		switch {
		case apierrors.IsForbidden(err):
			err = fmt.Errorf("the service account may not list and watch %s; grant it as %s does: %w", resource, grantOf(resource, state != nil), err)
			w.denied.Store(resource, err)
			w.log.ErrorContext(ctx, "a right is missing", "resource", resource, "err", err)
		case state != nil && apierrors.IsNotFound(err):
			// The informer asks again by itself, for as long as it takes.
			if state.absent.CompareAndSwap(false, true) {
				w.log.WarnContext(ctx, "a kind of sources is not installed any more", "resource", resource)
			}
		default:
			cache.DefaultWatchErrorHandler(ctx, reflector, err)
		}
	}
}

// grantOf is the manifest that gives the right to list and watch a resource.
func grantOf(resource string, isCustom bool) string {
	switch {
	case isCustom:
		return "deploy/components/secret-stores/watcher.yaml"
	case resource == namespaceResource:
		return "deploy/components/namespace-selector/rbac.yaml"
	}
	return "deploy/base/rbac.yaml"
}

// waitForSync waits until every informer has handed on its first list, but for those of kinds that are not installed. It is
// false when the context ended first.
func (w *Watcher) waitForSync(ctx context.Context) bool {
	synced := []cache.InformerSynced{w.namespaces.hasSynced}
	for _, kind := range w.kinds {
		synced = append(synced, func() bool {
			state := w.installs[kind.kind]
			return state != nil && state.absent.Load() || w.hasSynced(kind.kind)
		})
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// hasSynced tells whether the informers of a kind have handed on their first lists.
func (w *Watcher) hasSynced(kind events.Kind) bool {
	for _, synced := range w.informersSynced(kind) {
		if !synced() {
			return false
		}
	}
	return true
}

func (w *Watcher) informersSynced(kind events.Kind) []cache.InformerSynced {
	list := make([]cache.InformerSynced, 0, len(w.stores[kind]))
	for _, informer := range w.stores[kind] {
		list = append(list, informer.HasSynced)
	}
	return list
}
