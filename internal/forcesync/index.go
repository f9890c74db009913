package forcesync

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Index has the ExternalSecrets and their stores, and finds the ExternalSecrets that read a path of a secret store. A Watch fills it. It also collects
// the answers to the patches of a Syncer. It is safe for concurrent use.
type Index struct {
	signal   chan struct{} // readable when something has changed
	mu       sync.RWMutex
	secrets  map[types.NamespacedName]*externalsecret.ExternalSecret
	clusters map[types.NamespacedName]*metav1.ObjectMeta    // ClusterExternalSecrets, which have no namespace
	stores   map[types.NamespacedName]*externalsecret.Store // also ClusterSecretStores, which have no namespace
	by       map[any]map[types.NamespacedName]struct{}      // the names of the ExternalSecrets by their keys
	answers  []*patch
}

// templateKey is the key of an ExternalSecret whose template names a source, and targetKey that of one that writes it.
type (
	templateKey events.Source
	targetKey   events.Source
)

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{
		signal:   make(chan struct{}, 1),
		secrets:  make(map[types.NamespacedName]*externalsecret.ExternalSecret),
		clusters: make(map[types.NamespacedName]*metav1.ObjectMeta),
		stores:   make(map[types.NamespacedName]*externalsecret.Store),
		by:       make(map[any]map[types.NamespacedName]struct{}),
	}
}

// get returns an ExternalSecret, or nil if it does not exist.
func (x *Index) get(name types.NamespacedName) *externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.secrets[name]
}

// target returns what to patch to sync an ExternalSecret.
func (x *Index) target(es *externalsecret.ExternalSecret) target {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if owner := x.clusters[types.NamespacedName{Name: es.Owner}]; owner != nil {
		return target{*owner, externalsecret.ClusterExternalSecrets}
	}
	return target{es.ObjectMeta, externalsecret.ExternalSecrets}
}

// find lists the ExternalSecrets that have any of the keys, sorted by namespace and name.
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
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
}

// dependents lists the ExternalSecrets that read what a rotation wrote.
func (x *Index) dependents(r externalsecret.Rotation) []*externalsecret.ExternalSecret {
	return slices.DeleteFunc(x.find(r.Keys()...), func(es *externalsecret.ExternalSecret) bool { return !es.Reads(x.store, r) })
}

// Templates lists what templates name. Call Resume for the last event of each, and for that of each secret in a store.
func (y *Syncer) Templates() (list []events.Source) {
	y.index.mu.RLock()
	defer y.index.mu.RUnlock()
	for key := range y.index.by {
		if source, ok := key.(templateKey); ok {
			list = append(list, events.Source(source))
		}
	}
	return list
}

// store returns a store, or nil if it does not exist.
func (x *Index) store(name types.NamespacedName) *externalsecret.Store {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.stores[name]
}

// put stores the state of an object, unless it is an ExternalSecret of which a newer one is known. If the object is gone, put removes it.
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
		users := slices.Collect(maps.Keys(x.by[name]))
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

// answer collects the answer to a patch. It does not resurrect an ExternalSecret that has been deleted or replaced since.
func (x *Index) answer(p *patch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if es := p.after; es != nil {
		if earlier := x.secrets[nameOf(es)]; earlier != nil && earlier.UID == es.UID && events.Newer(es.ResourceVersion, earlier.ResourceVersion) {
			x.replace(es, false)
		}
	}
	x.answers = append(x.answers, p)
	x.alert()
}

// take returns the answers that were collected, and forgets them.
func (x *Index) take() (answers []*patch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	answers, x.answers = x.answers, nil
	return answers
}

// alert signals that something has changed.
func (x *Index) alert() {
	select {
	case x.signal <- struct{}{}:
	default: // signaled already
	}
}

// replace replaces an ExternalSecret, or removes it if it is gone.
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

// link has an ExternalSecret found by its keys: the paths that it reads, as far as its stores are known, the stores that it names, what its template
// names, and what it writes. With in = false, it is not found any more.
func (x *Index) link(es *externalsecret.ExternalSecret, in bool) {
	keys := []any{targetKey(es.Target)}
	for _, source := range es.Templates {
		keys = append(keys, templateKey(source))
	}
	for _, store := range es.Stores() {
		keys = append(keys, store)
	}
	for _, place := range es.Places(func(name types.NamespacedName) *externalsecret.Store { return x.stores[name] }) {
		keys = append(keys, place.Key())
	}
	for _, key := range keys {
		if x.by[key] == nil {
			x.by[key] = make(map[types.NamespacedName]struct{})
		}
		if x.by[key][nameOf(es)] = struct{}{}; !in {
			delete(x.by[key], nameOf(es))
		}
		if len(x.by[key]) == 0 {
			delete(x.by, key)
		}
	}
}

// nameOf returns the name of an object in the index.
func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
