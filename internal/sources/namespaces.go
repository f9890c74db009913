package sources

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

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

// namespaceFilter selects namespaces by their labels. With an empty selector, it matches all namespaces and makes no requests. It implements
// kube.Sink.
type namespaceFilter struct {
	client   kubernetes.Interface
	selector labels.Selector
	handler  *objectHandler

	mu       sync.RWMutex
	selected map[string]bool // whether each existing namespace is selected; nil before the first list
	listed   atomic.Bool     // the first list has been handled
}

// arrival is how a namespace came into scope.
type arrival int

const (
	byLabel    arrival = iota // an existing namespace was labeled
	byCreation                // it was created with the label
	byList                    // it was in scope when namespaces were first listed
)

func newNamespaceFilter(client kubernetes.Interface, selector labels.Selector, handler *objectHandler) *namespaceFilter {
	return &namespaceFilter{client: client, selector: selector, handler: handler}
}

// run keeps the filter in line with the API server until ctx is done.
func (f *namespaceFilter) run(ctx context.Context, errors *watchErrors) {
	reflector := kube.Reflector[runtime.Object]{
		Resource: upToDate[*corev1.NamespaceList]{client: f.client.CoreV1().Namespaces()}, Client: f.client, Where: namespaceResource,
		Example: &corev1.Namespace{}, Store: kube.StoreOf[*corev1.Namespace](ctx, f),
	}
	check := errors.of(namespaceResource, grantNamespaces, nil)
	errors.keep(ctx, func() error { return reflector.Run(ctx, check) })
}

// Reduce implements kube.Sink.
func (f *namespaceFilter) Reduce(object runtime.Object) (*corev1.Namespace, bool) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return nil, false
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
	}}, true
}

// Put handles a namespace that was created, or whose labels may have changed. It implements kube.Sink.
func (f *namespaceFilter) Put(_ context.Context, namespace *corev1.Namespace) {
	f.mu.Lock()
	was, known := f.selected[namespace.Name]
	f.selected[namespace.Name] = f.selects(namespace)
	f.mu.Unlock()
	f.enter(namespace, was, known, byCreation)
}

// Drop forgets a namespace. Its objects are deleted one by one. It implements kube.Sink.
func (f *namespaceFilter) Drop(_ context.Context, namespace *corev1.Namespace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.selected, namespace.Name)
}

// Replace implements kube.Sink.
func (f *namespaceFilter) Replace(_ context.Context, namespaces []*corev1.Namespace, _ string) {
	selected, as := make(map[string]bool, len(namespaces)), byCreation
	for _, namespace := range namespaces {
		selected[namespace.Name] = f.selects(namespace)
	}
	f.mu.Lock()
	before := f.selected
	f.selected = selected
	f.mu.Unlock()
	if before == nil {
		as = byList
	}
	for _, namespace := range namespaces {
		was, known := before[namespace.Name]
		f.enter(namespace, was, known, as)
	}
	f.listed.Store(true)
}

// enter queues the sources of a namespace that comes into scope. as is how it does if it was not known before.
func (f *namespaceFilter) enter(namespace *corev1.Namespace, was, known bool, as arrival) {
	switch {
	case was || !f.selects(namespace):
	case known:
		f.handler.enterNamespace(namespace.Name, byLabel)
	default:
		f.handler.enterNamespace(namespace.Name, as)
	}
}

func (f *namespaceFilter) selects(namespace *corev1.Namespace) bool {
	return f.selector.Matches(labels.Set(namespace.Labels))
}

// hasSynced reports whether every selected namespace of the first list has been handled.
func (f *namespaceFilter) hasSynced() bool { return f.selector.Empty() || f.listed.Load() }

func (f *namespaceFilter) matches(name string) bool {
	if f.selector.Empty() {
		return true
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.selected[name]
}
