package sources

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/kube"
)

const (
	namespaceResource = "namespaces"
	grantNamespaces   = "deploy/components/namespace-selector/rbac.yaml" // the manifest that grants the permission
)

// scope is the set of namespaces whose sources are watched.
type scope struct {
	// names is empty for all namespaces, except the ignored ones.
	names, ignored []string
	selected       *namespaceFilter
}

// listed returns the namespaces that are listed and watched one by one.
func (s scope) listed() []string { return kube.Listed(s.names) }

// includes reports whether the sources of a namespace are watched.
func (s scope) includes(namespace string) bool {
	return s.lists(namespace) && s.selected.matches(namespace)
}

// lists reports whether the objects of a namespace are cached, even if the namespace is not selected.
func (s scope) lists(namespace string) bool {
	return kube.Includes(s.names, s.ignored, namespace)
}

// namespaceFilter selects namespaces by their labels. With an empty selector it matches all namespaces and makes no requests. It implements
// cache.ResourceEventHandler.
type namespaceFilter struct {
	selector labels.Selector
	informer cache.SharedIndexInformer
	handled  cache.ResourceEventHandlerRegistration // of the filter with the informer, nil before start
	sources  namespaceHandler
}

// namespaceHandler handles the sources of a namespace that comes into scope.
type namespaceHandler interface {
	enterNamespace(namespace string, as arrival)
}

// arrival is how a namespace came into scope.
type arrival int

const (
	byLabel    arrival = iota // an existing namespace was labeled
	byCreation                // it was created with the label
	byList                    // it was in scope when namespaces were first listed
)

func newNamespaceFilter(client kubernetes.Interface, selector labels.Selector, sources namespaceHandler) *namespaceFilter {
	filter := &namespaceFilter{selector: selector, sources: sources}
	if !selector.Empty() {
		filter.informer = coreinformers.NewFilteredNamespaceInformer(client, 0, nil, upToDate)
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
	err := f.informer.SetTransform(labelsOnly)
	if err == nil {
		err = f.informer.SetWatchErrorHandlerWithContext(onError)
	}
	if err == nil {
		f.handled, err = f.informer.AddEventHandler(f)
	}
	if err != nil {
		return fmt.Errorf("making the informer of namespaces: %w", err)
	}
	running.Go(func() { f.informer.RunWithContext(ctx) })
	return nil
}

// OnAdd handles a namespace that was listed or created.
func (f *namespaceFilter) OnAdd(obj any, inFirstList bool) {
	if !f.selects(obj) {
		return
	}
	as := byCreation
	if inFirstList {
		as = byList
	}
	f.sources.enterNamespace(obj.(*corev1.Namespace).Name, as)
}

// OnUpdate handles a namespace whose labels may have changed.
func (f *namespaceFilter) OnUpdate(before, after any) {
	if f.selects(after) && !f.selects(before) {
		f.sources.enterNamespace(after.(*corev1.Namespace).Name, byLabel)
	}
}

// OnDelete does nothing: the objects of a namespace are deleted one by one.
func (f *namespaceFilter) OnDelete(any) {}

func (f *namespaceFilter) selects(obj any) bool {
	namespace, ok := obj.(*corev1.Namespace)
	return ok && f.selector.Matches(labels.Set(namespace.Labels))
}

// hasSynced reports whether every selected namespace of the first list has been handled.
func (f *namespaceFilter) hasSynced() bool {
	return f.informer == nil || f.handled != nil && f.handled.HasSynced()
}

func (f *namespaceFilter) matches(name string) bool {
	if f.informer == nil {
		return true
	}
	found, ok, err := f.informer.GetStore().GetByKey(name)
	return err == nil && ok && f.selects(found)
}
