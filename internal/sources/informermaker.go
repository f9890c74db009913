package sources

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/internal/sources/kinds"
)

// informerMaker makes informers that cache reduced objects.
type informerMaker struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	ring    *kinds.Keyring
	keys    reloader.Annotations
	// selector is the label selector that the API server applies to sources; empty matches all. It also leaves out the ignored namespaces.
	selector string
	ignored  []string
	handler  cache.ResourceEventHandler
	errors   *watchErrors
}

// makeAll makes the informers of a kind in each of the namespaces.
func (m *informerMaker) makeAll(kind kinds.Listed, namespaces []string) (*kindInformers, error) {
	made := &kindInformers{listing: kind.Listing()}
	if made.listing.IsCustom() {
		made.install = &installState{}
	}
	onError := m.errors.of(made.listing.Name(), made.listing.Grant, made.install)
	for _, namespace := range namespaces {
		informer, err := m.make(kind, namespace)
		if err == nil {
			err = informer.SetWatchErrorHandlerWithContext(onError)
		}
		var handled cache.ResourceEventHandlerRegistration
		if err == nil {
			handled, err = informer.AddEventHandler(m.handler)
		}
		if err != nil {
			return nil, fmt.Errorf("making the informer of %s: %w", made.listing.Name(), err)
		}
		made.each, made.handled = append(made.each, informer), append(made.handled, handled)
	}
	return made, nil
}

func (m *informerMaker) make(kind kinds.Listed, namespace string) (cache.SharedIndexInformer, error) {
	listing, transform := kind.Listing(), kinds.Transform(kind, m.ring, m.keys)
	narrow := func(list *metav1.ListOptions) {
		upToDate(list)
		if _, isSource := kind.(kinds.Kind); isSource {
			list.LabelSelector = m.selector
		}
		list.FieldSelector = kube.Fields(listing.Fields, kube.Outside(m.ignored))
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	maps.Copy(indexers, listing.Indexers)
	// A factory of all informers would link the clients of all resources: megabytes of each program.
	var informer cache.SharedIndexInformer
	switch listing.Kind {
	case events.KindSecret:
		informer = coreinformers.NewFilteredSecretInformer(m.client, namespace, 0, indexers, narrow)
	case events.KindConfigMap:
		informer = coreinformers.NewFilteredConfigMapInformer(m.client, namespace, 0, indexers, narrow)
	default:
		informer = dynamicinformer.NewFilteredDynamicInformer(m.dynamic, listing.Resource, namespace, 0, indexers, narrow).Informer()
	}
	return informer, informer.SetTransform(transform)
}

// upToDate makes a first list include all earlier writes. Informers ask for resourceVersion 0, which an API server without streaming lists answers
// from its cache, however old that is, and an object that is missing there would count as deleted.
func upToDate(list *metav1.ListOptions) {
	if list.ResourceVersion == "0" {
		list.ResourceVersion = ""
	}
}
