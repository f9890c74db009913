package forcesync

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Index finds the ExternalSecrets that read a path of a secret store. A Watch fills it. It is safe for concurrent use.
type Index struct {
	signal   chan struct{} // readable when something has changed, or a patch has a response
	mu       sync.RWMutex
	secrets  map[types.NamespacedName]*externalsecret.ExternalSecret
	clusters map[types.NamespacedName]*metav1.ObjectMeta    // ClusterExternalSecrets, which have no namespace
	stores   map[types.NamespacedName]*externalsecret.Store // also ClusterSecretStores, which have no namespace
	by       map[any]sets.Set[types.NamespacedName]         // the names of the ExternalSecrets by their keys
}

type (
	templateKey events.Source // the key of an ExternalSecret whose template names the source
	targetKey   events.Source // the key of an ExternalSecret that writes the source
)

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{
		signal: make(chan struct{}, 1), secrets: make(map[types.NamespacedName]*externalsecret.ExternalSecret),
		clusters: make(map[types.NamespacedName]*metav1.ObjectMeta), stores: make(map[types.NamespacedName]*externalsecret.Store),
		by: make(map[any]sets.Set[types.NamespacedName]),
	}
}

func (x *Index) get(name types.NamespacedName) *externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.secrets[name]
}

// target returns the object to patch for a sync of an ExternalSecret: itself, or the ClusterExternalSecret that created it, which has no namespace,
// because the operator reverts patches of ExternalSecrets that it has created.
func (x *Index) target(es *externalsecret.ExternalSecret) *metav1.ObjectMeta {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if owner := x.clusters[types.NamespacedName{Name: es.Owner}]; owner != nil {
		return owner
	}
	return &es.ObjectMeta
}

// find lists the ExternalSecrets with any of the keys, without duplicates.
func (x *Index) find(keys ...any) []*externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []*externalsecret.ExternalSecret
	for _, key := range keys {
		for name := range x.by[key] {
			list = append(list, x.secrets[name])
		}
	}
	slices.SortFunc(list, func(a, b *externalsecret.ExternalSecret) int {
		return strings.Compare(nameOf(a).String(), nameOf(b).String())
	})
	return slices.Compact(list)
}

func (x *Index) store(name types.NamespacedName) *externalsecret.Store {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.stores[name]
}

// put stores the state of an object, unless it is an ExternalSecret with a newer known state. If the object was deleted, put removes it.
func (x *Index) put(obj metav1.Object, gone bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	name := nameOf(obj)
	switch o := obj.(type) {
	case *externalsecret.ExternalSecret:
		if earlier := x.secrets[name]; gone || earlier == nil || earlier.UID != o.UID || events.Newer(o.ResourceVersion, earlier.ResourceVersion) {
			x.replace(o, gone)
		}
	case *externalsecret.Store:
		users := x.by[name].UnsortedList()
		for _, user := range users {
			x.link(x.secrets[user], false)
		}
		if x.stores[name] = o; gone {
			delete(x.stores, name)
		}
		for _, user := range users {
			x.link(x.secrets[user], true)
		}
	case *metav1.ObjectMeta:
		if x.clusters[name] = o; gone {
			delete(x.clusters, name)
		}
	}
	x.alert()
}

// putPatched stores the state of an ExternalSecret that a patch returned, unless it has been deleted or replaced since.
func (x *Index) putPatched(es *externalsecret.ExternalSecret) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if earlier := x.secrets[nameOf(es)]; earlier != nil && earlier.UID == es.UID && events.Newer(es.ResourceVersion, earlier.ResourceVersion) {
		x.replace(es, false)
	}
}

func (x *Index) alert() {
	select {
	case x.signal <- struct{}{}:
	default: // signaled already
	}
}

func (x *Index) replace(es *externalsecret.ExternalSecret, gone bool) {
	name := nameOf(es)
	if earlier := x.secrets[name]; earlier != nil {
		x.link(earlier, false)
	}
	if x.secrets[name] = es; gone {
		delete(x.secrets, name)
		return
	}
	x.link(es, true)
}

// link adds the keys of an ExternalSecret to the index: the paths that it reads in known stores, the stores, the sources in its template, and the
// written object. With in = false, it removes them.
func (x *Index) link(es *externalsecret.ExternalSecret, in bool) {
	keys := []any{targetKey(es.Target)}
	for _, source := range es.Templates {
		keys = append(keys, templateKey(source))
	}
	for _, store := range es.Stores() {
		keys = append(keys, store)
	}
	for _, place := range es.Places(func(name types.NamespacedName) *externalsecret.Store { return x.stores[name] }) {
		keys = append(keys, place.Key)
	}
	for _, key := range keys {
		switch users := x.by[key]; {
		case in && users == nil:
			x.by[key] = sets.New(nameOf(es))
		case in:
			users.Insert(nameOf(es))
		case users.Delete(nameOf(es)).Len() == 0:
			delete(x.by, key)
		}
	}
}

func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
