package sources

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// namespaceResource is the resource that the filter lists and watches.
const namespaceResource = "namespaces"

// namespaceFilter selects namespaces by their labels. With an empty selector it matches all namespaces and makes no requests.
type namespaceFilter struct {
	selector labels.Selector
	informer cache.SharedIndexInformer
	// handled is the registration of the handler, nil before start.
	handled cache.ResourceEventHandlerRegistration
	entered func(namespace string, as arrival)
}

// arrival is how a namespace came into scope.
type arrival int

const (
	// byLabel means that a namespace that was known before has got the label.
	byLabel arrival = iota
	// byCreation means that it was created with the label.
	byCreation
	// byList means that it was in scope when namespaces were first listed.
	byList
)

// newNamespaceFilter returns a filter that calls entered for each namespace that comes into scope.
func newNamespaceFilter(client kubernetes.Interface, selector labels.Selector, entered func(namespace string, as arrival)) *namespaceFilter {
	filter := &namespaceFilter{selector: selector, entered: entered}
	if !selector.Empty() {
		factory := informers.NewSharedInformerFactoryWithOptions(
			client, 0, informers.WithTransform(labelsOnly), informers.WithTweakListOptions(upToDate),
		)
		filter.informer = factory.Core().V1().Namespaces().Informer()
	}
	return filter
}

func labelsOnly(obj any) (any, error) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
	}}, nil
}

func (f *namespaceFilter) start(ctx context.Context, running *sync.WaitGroup, onError cache.WatchErrorHandlerWithContext) error {
	if f.informer == nil {
		return nil
	}
	if err := f.informer.SetWatchErrorHandlerWithContext(onError); err != nil {
		return fmt.Errorf("making the informer of namespaces: %w", err)
	}
	var err error
	f.handled, err = f.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				f.labelsChanged(nil, obj, byList)
				return
			}
			f.labelsChanged(nil, obj, byCreation)
		},
		UpdateFunc: func(before, after any) { f.labelsChanged(before, after, byLabel) },
	})
	if err != nil {
		return fmt.Errorf("making the informer of namespaces: %w", err)
	}
	running.Go(func() { f.informer.RunWithContext(ctx) })
	return nil
}

func (f *namespaceFilter) labelsChanged(before, after any, as arrival) {
	now, ok := after.(*corev1.Namespace)
	if !ok || !f.selector.Matches(labels.Set(now.Labels)) {
		return
	}
	if was, ok := before.(*corev1.Namespace); ok && f.selector.Matches(labels.Set(was.Labels)) {
		return
	}
	f.entered(now.Name, as)
}

// hasSynced reports whether entered has been called for every selected namespace of the first list.
func (f *namespaceFilter) hasSynced() bool {
	return f.informer == nil || f.handled != nil && f.handled.HasSynced()
}

func (f *namespaceFilter) matches(name string) bool {
	if f.informer == nil {
		return true
	}
	found, ok, err := f.informer.GetStore().GetByKey(name)
	if err != nil || !ok {
		return false
	}
	namespace, ok := found.(*corev1.Namespace)
	return ok && f.selector.Matches(labels.Set(namespace.Labels))
}
