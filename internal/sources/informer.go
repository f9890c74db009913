package sources

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// informerOptions is what the informers of all kinds have in common.
type informerOptions struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	ring    *kinds.Keyring
	keys    reloader.Annotations
	// selector is the label selector that the API server applies to sources; empty matches all. It also leaves out the ignored namespaces.
	selector string
	ignored  []string
	handler  *objectHandler
}

// informer caches the objects of a kind in one namespace, or in all of them, reduced, and tells the handler what changes. It has less to keep for
// each object than client-go's informers, and passes a change on in one goroutine. It implements kube.Sink.
type informer struct {
	*informerOptions
	kind      kinds.Listed
	namespace string
	store     *kinds.Store
	version   atomic.Pointer[string] // the resourceVersion that the store has reached; nil before the first list
	listed    atomic.Bool            // the handler has received the first list
}

func newInformer(options *informerOptions, kind kinds.Listed, namespace string) *informer {
	return &informer{informerOptions: options, kind: kind, namespace: namespace, store: kinds.NewStore(kind.Listing().Kind)}
}

// run keeps the store in line with the API server until ctx is done, and then returns nil, or until check returns an error for a request.
func (i *informer) run(ctx context.Context, check requestCheck) error {
	listing := i.kind.Listing()
	reflector := kube.Reflector[runtime.Object]{
		Where: kube.Scope(listing.Name(), i.namespace), Fields: kube.Fields(listing.Fields, kube.Outside(i.ignored)),
		Client: i.client, Store: kube.StoreOf[*kinds.Object](ctx, i),
	}
	var labels string
	if _, isSource := i.kind.(kinds.Kind); isSource {
		labels = i.selector
	}
	switch listing.Kind {
	case events.KindSecret:
		reflector.Resource, reflector.Example = upToDate[*corev1.SecretList]{i.client.CoreV1().Secrets(i.namespace), labels}, &corev1.Secret{}
	case events.KindConfigMap:
		configMaps := i.client.CoreV1().ConfigMaps(i.namespace)
		reflector.Resource, reflector.Example = upToDate[*corev1.ConfigMapList]{configMaps, labels}, &corev1.ConfigMap{}
	default:
		reflector.Client, reflector.Example = i.dynamic, &unstructured.Unstructured{}
		reflector.Resource = upToDate[*unstructured.UnstructuredList]{i.dynamic.Resource(listing.Resource).Namespace(i.namespace), labels}
	}
	return reflector.Run(ctx, check)
}

// Reduce implements kube.Sink.
func (i *informer) Reduce(object runtime.Object) (*kinds.Object, bool) {
	return kinds.Reduce(i.kind, i.ring, i.keys, object)
}

// Put implements kube.Sink.
func (i *informer) Put(_ context.Context, now *kinds.Object) {
	before := i.store.Put(now)
	i.UpdateResourceVersion(now.ResourceVersion)
	if before != nil {
		i.handler.updated(before, now)
	} else {
		i.handler.added(now, false)
	}
}

// Drop implements kube.Sink.
func (i *informer) Drop(_ context.Context, last *kinds.Object) {
	known := i.store.Drop(last.Source)
	i.UpdateResourceVersion(last.ResourceVersion)
	if known {
		i.handler.deleted(last)
	}
}

// Replace implements kube.Sink.
func (i *informer) Replace(_ context.Context, objects []*kinds.Object, version string) {
	before, isFirst := i.store.Replace(objects), !i.listed.Load()
	i.UpdateResourceVersion(version)
	for _, now := range objects {
		if earlier := before.Get(now.Source); earlier != nil {
			i.handler.updated(earlier, now)
		} else {
			i.handler.added(now, isFirst)
		}
	}
	for _, source := range before.Sources() {
		if !i.store.Has(source) {
			i.handler.deleted(before.Get(source))
		}
	}
	i.listed.Store(true)
}

// UpdateResourceVersion records the resourceVersion that the store has reached, before the handler tells anybody to look there. It implements
// cache.ResourceVersionUpdater, for bookmarks.
func (i *informer) UpdateResourceVersion(version string) { i.version.Store(&version) }

// upToDate lists and watches the objects with the labels, by a client. Its lists have all earlier writes. Reflectors ask for resourceVersion 0 at
// first, which an API server without streaming lists answers from its cache, however old that is, and an object that is missing there would count as
// deleted.
type upToDate[List runtime.Object] struct {
	client kube.Resource[List]
	labels string
}

// List implements kube.Resource.
func (u upToDate[List]) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.LabelSelector = u.labels
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	return u.client.List(ctx, options)
}

// Watch implements kube.Resource.
func (u upToDate[List]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.LabelSelector = u.labels
	return u.client.Watch(ctx, options)
}
