package sources

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
)

// informerMaker makes informers that cache reduced objects.
type informerMaker struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	ring    *keyring
	keys    annotations.Reloader
	// selector is matched against the labels of objects by the API server. An empty one matches all.
	selector string
	// ignored has the namespaces whose objects the API server leaves out.
	ignored []string
	// isNew reports whether an object that was not cached before was created, and not brought into scope by a label.
	isNew func(o *object, initial bool) bool
	// noticed is called for each object that may have changed.
	noticed func(source events.Source)
	// created is called for each object that was created.
	created func(first *object)
	// gone is called for each source whose object was deleted or no longer matches the selector.
	gone func(source events.Source)
	// contents receives each state of an object.
	contents *podContents
	errors   *watchErrors
}

// makeAll makes the informers of a kind in each of the namespaces.
func (m *informerMaker) makeAll(kind sourceKind, namespaces []string) (*kindInformers, error) {
	made, manifest := &kindInformers{source: kind}, grantBase
	if kind.isCustom() {
		made.install, manifest = &installState{}, kind.grant
	}
	onError := m.errors.of(kind.resource, manifest, made.install)
	for _, namespace := range namespaces {
		informer, err := m.make(kind, namespace)
		if err == nil {
			err = informer.SetWatchErrorHandlerWithContext(onError)
		}
		var handled cache.ResourceEventHandlerRegistration
		if err == nil {
			handled, err = informer.AddEventHandler(m.handler())
		}
		if err != nil {
			return nil, fmt.Errorf("making the informer of %s: %w", kind.resource, err)
		}
		made.each, made.handled = append(made.each, informer), append(made.handled, handled)
	}
	return made, nil
}

// upToDate makes a first list include all that was written before. Informers ask for resourceVersion 0, for which an API server without streaming
// lists answers from its cache, however late that is: what it lacks would count as deleted.
func upToDate(list *metav1.ListOptions) {
	if list.ResourceVersion == "0" {
		list.ResourceVersion = ""
	}
}

func (m *informerMaker) make(kind sourceKind, namespace string) (cache.SharedIndexInformer, error) {
	narrow := func(list *metav1.ListOptions) {
		upToDate(list)
		if kind.options != nil {
			kind.options(list)
		}
		if kind.assess != nil {
			list.LabelSelector = m.selector
		}
		list.FieldSelector = kube.Fields(list.FieldSelector, kube.Outside(m.ignored))
	}
	if !kind.isCustom() {
		return kind.informer(informers.NewSharedInformerFactoryWithOptions(m.client, 0, informers.WithNamespace(namespace),
			informers.WithTransform(kind.transform(m.ring, m.keys)), informers.WithTweakListOptions(narrow))), nil
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer := dynamicinformer.NewFilteredDynamicInformer(m.dynamic, kind.custom, namespace, 0, indexers, narrow).Informer()
	if err := informer.AddIndexers(kind.indexers); err != nil {
		return nil, err
	}
	return informer, informer.SetTransform(kind.transform(m.ring, m.keys))
}

func (m *informerMaker) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			seen, ok := obj.(*object)
			if ok {
				m.contents.added(seen)
			}
			if ok && seen.about().Name != "" && m.isNew(seen, initial) {
				m.created(seen)
				return
			}
			m.notice(obj)
		},
		UpdateFunc: func(before, after any) {
			// The content may be the same under another resourceVersion, and always is under the same one.
			if b, ok := before.(*object); ok {
				if a, ok := after.(*object); ok {
					if a.ResourceVersion == b.ResourceVersion {
						return
					}
					m.contents.updated(b, a)
				}
			}
			m.notice(after)
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if last, ok := obj.(*object); ok {
				m.contents.removed(last)
				m.went(last)
			}
		},
	}
}

func (m *informerMaker) notice(obj any) {
	if seen, ok := obj.(*object); ok && seen.about().Name != "" {
		m.noticed(seen.about())
	}
}

// went handles an object that is no longer cached.
func (m *informerMaker) went(last *object) {
	if last.podStatus() != nil {
		m.notice(last) // The class is still there.
		return
	}
	m.gone(last.source)
}
