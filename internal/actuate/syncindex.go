package actuate

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/workload"
)

// syncIndex knows the ExternalSecrets and their stores, and for each path in a secret store which of them read it, without
// asking anybody. It is fed by informers, and is safe for use by several goroutines.
type syncIndex struct {
	// changed is called after an ExternalSecret has changed or gone, outside of the lock. It must not block.
	changed func(types.NamespacedName)

	mu       sync.RWMutex
	secrets  map[types.NamespacedName]*externalsecret.ExternalSecret
	clusters map[string]*externalsecret.ClusterExternalSecret
	stores   map[types.NamespacedName]*externalsecret.Store
	// readers are the ExternalSecrets by what they read, and users those by the stores that they name.
	readers syncNames[externalsecret.Key]
	users   syncNames[types.NamespacedName]
	// keys are those under which an ExternalSecret stands among the readers.
	keys map[types.NamespacedName][]externalsecret.Key
}

// syncNames holds sets of names.
type syncNames[K comparable] map[K]map[types.NamespacedName]struct{}

func (n syncNames[K]) add(key K, name types.NamespacedName) {
	if n[key] == nil {
		n[key] = make(map[types.NamespacedName]struct{})
	}
	n[key][name] = struct{}{}
}

func (n syncNames[K]) remove(key K, name types.NamespacedName) {
	delete(n[key], name)
	if len(n[key]) == 0 {
		delete(n, key)
	}
}

func newSyncIndex(changed func(types.NamespacedName)) *syncIndex {
	return &syncIndex{
		changed:  changed,
		secrets:  make(map[types.NamespacedName]*externalsecret.ExternalSecret),
		clusters: make(map[string]*externalsecret.ClusterExternalSecret),
		stores:   make(map[types.NamespacedName]*externalsecret.Store),
		readers:  make(syncNames[externalsecret.Key]),
		users:    make(syncNames[types.NamespacedName]),
		keys:     make(map[types.NamespacedName][]externalsecret.Key),
	}
}

// get gives an ExternalSecret, nil where there is none.
func (x *syncIndex) get(name types.NamespacedName) *externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.secrets[name]
}

// owner gives the ClusterExternalSecret that made an ExternalSecret, nil where there is none.
func (x *syncIndex) owner(es *externalsecret.ExternalSecret) *externalsecret.ClusterExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.clusters[es.Owner]
}

// dependents lists the ExternalSecrets that read what a rotation made, by namespace and name. Its cost is proportional to
// the number of those that read the path, or look for secrets in its mount.
func (x *syncIndex) dependents(r externalsecret.Rotation) []*externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []*externalsecret.ExternalSecret
	listed := make(map[types.NamespacedName]struct{})
	for _, key := range r.Keys() {
		for name := range x.readers[key] {
			es := x.secrets[name]
			if _, again := listed[name]; !again && es.Reads(x.store, r) {
				listed[name] = struct{}{}
				list = append(list, es)
			}
		}
	}
	slices.SortFunc(list, func(a, b *externalsecret.ExternalSecret) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (x *syncIndex) store(name types.NamespacedName) *externalsecret.Store { return x.stores[name] }

// put takes the state of an object.
func (x *syncIndex) put(obj any) {
	switch o := obj.(type) {
	case *externalsecret.ExternalSecret:
		x.mu.Lock()
		earlier := x.secrets[nameOf(o)]
		fresh := earlier == nil || earlier.UID != o.UID || workload.Newer(o.ResourceVersion, earlier.ResourceVersion)
		if fresh {
			x.add(o)
		}
		x.mu.Unlock()
		if fresh {
			x.changed(nameOf(o))
		}
	case *externalsecret.Store:
		x.restore(nameOf(o), o)
	case *externalsecret.ClusterExternalSecret:
		x.mu.Lock()
		x.clusters[o.Name] = o
		x.mu.Unlock()
	}
}

// answer takes the state of an ExternalSecret that a patch was answered with. One that is gone by then, or has a successor,
// does not come back by it.
func (x *syncIndex) answer(es *externalsecret.ExternalSecret) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if earlier := x.secrets[nameOf(es)]; earlier != nil && earlier.UID == es.UID && workload.Newer(es.ResourceVersion, earlier.ResourceVersion) {
		x.add(es)
	}
}

// drop takes that an object is gone.
func (x *syncIndex) drop(obj any) {
	switch o := obj.(type) {
	case *externalsecret.ExternalSecret:
		name := nameOf(o)
		x.mu.Lock()
		x.remove(name)
		x.mu.Unlock()
		x.changed(name)
	case *externalsecret.Store:
		x.restore(nameOf(o), nil)
	case *externalsecret.ClusterExternalSecret:
		x.mu.Lock()
		delete(x.clusters, o.Name)
		x.mu.Unlock()
	}
}

// restore has a store be as it is now, nil for gone, for all who use it.
func (x *syncIndex) restore(name types.NamespacedName, store *externalsecret.Store) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if store == nil {
		delete(x.stores, name)
	} else {
		x.stores[name] = store
	}
	for user := range x.users[name] {
		x.unplace(user)
		x.place(user, x.secrets[user])
	}
}

func (x *syncIndex) add(es *externalsecret.ExternalSecret) {
	name := nameOf(es)
	x.remove(name)
	x.secrets[name] = es
	for _, store := range es.Stores() {
		x.users.add(store, name)
	}
	x.place(name, es)
}

func (x *syncIndex) remove(name types.NamespacedName) {
	es := x.secrets[name]
	if es == nil {
		return
	}
	delete(x.secrets, name)
	for _, store := range es.Stores() {
		x.users.remove(store, name)
	}
	x.unplace(name)
}

func (x *syncIndex) place(name types.NamespacedName, es *externalsecret.ExternalSecret) {
	for _, place := range es.Places(x.store) {
		x.readers.add(place.Key(), name)
		x.keys[name] = append(x.keys[name], place.Key())
	}
}

func (x *syncIndex) unplace(name types.NamespacedName) {
	for _, key := range x.keys[name] {
		x.readers.remove(key, name)
	}
	delete(x.keys, name)
}

// nameOf is the name of an object in the index.
func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
