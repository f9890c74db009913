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
	"github.com/keyturn/keyturn/internal/workload"
)

// Index has the ExternalSecrets and their stores, and finds the ExternalSecrets that read a path of a secret store. A Watch feeds it. It
// is safe for concurrent use.
type Index struct {
	inbox *inbox

	mu       sync.RWMutex
	secrets  map[types.NamespacedName]*externalsecret.ExternalSecret
	clusters map[string]*externalsecret.ClusterExternalSecret
	stores   map[types.NamespacedName]*externalsecret.Store
	// readers has the ExternalSecrets by what they read, users by the stores that they name, and targets by what they write.
	readers nameSets[externalsecret.Key]
	users   nameSets[types.NamespacedName]
	targets nameSets[events.Source]
	// keys has the keys under which each ExternalSecret is in readers.
	keys map[types.NamespacedName][]externalsecret.Key
}

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{
		inbox:    newInbox(),
		secrets:  make(map[types.NamespacedName]*externalsecret.ExternalSecret),
		clusters: make(map[string]*externalsecret.ClusterExternalSecret),
		stores:   make(map[types.NamespacedName]*externalsecret.Store),
		readers:  make(nameSets[externalsecret.Key]),
		users:    make(nameSets[types.NamespacedName]),
		targets:  make(nameSets[events.Source]),
		keys:     make(map[types.NamespacedName][]externalsecret.Key),
	}
}

// attend starts collecting changes for a Syncer. It marks all known ExternalSecrets as changed.
func (x *Index) attend() {
	x.inbox.begin()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for name := range x.secrets {
		x.inbox.markChanged(name)
	}
}

// get returns an ExternalSecret, or nil if it does not exist.
func (x *Index) get(name types.NamespacedName) *externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.secrets[name]
}

// owner returns the ClusterExternalSecret that created an ExternalSecret, or nil if there is none or it is unknown.
func (x *Index) owner(es *externalsecret.ExternalSecret) *externalsecret.ClusterExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.clusters[es.Owner]
}

// writers lists the ExternalSecrets that write a Secret or a ConfigMap, in no order.
func (x *Index) writers(target events.Source) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.targets[target]))
}

// dependents lists the ExternalSecrets that read what a rotation wrote, sorted by namespace and name. Its cost depends only on the number
// of ExternalSecrets that read the path or search its mount.
func (x *Index) dependents(r externalsecret.Rotation) []*externalsecret.ExternalSecret {
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

// elsewhere returns ExternalSecrets that read what a rotation wrote at an address that is not of its store, one for each such address.
func (x *Index) elsewhere(r externalsecret.Rotation) map[string]types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found map[string]types.NamespacedName
	for _, key := range r.Keys() {
		for name := range x.readers[key] {
			if server, ok := x.secrets[name].ReadsElsewhere(x.store, r); ok {
				if found == nil {
					found = make(map[string]types.NamespacedName)
				}
				found[server] = name
			}
		}
	}
	return found
}

// readsOnlyKV reports whether an ExternalSecret reads nothing that may differ in each answer, as far as its syncs show it.
func (x *Index) readsOnlyKV(es *externalsecret.ExternalSecret, syncs group) bool {
	rotations := make([]externalsecret.Rotation, 0, len(syncs))
	for _, s := range syncs {
		rotations = append(rotations, s.rotation)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return es.ReadsOnlyKV(x.store, rotations)
}

// store returns a store, or nil if it does not exist.
func (x *Index) store(name types.NamespacedName) *externalsecret.Store { return x.stores[name] }

// put stores the state of an object, unless a newer one is known.
func (x *Index) put(obj any) {
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
			x.inbox.markChanged(nameOf(o))
		}
	case *externalsecret.Store:
		x.putStore(nameOf(o), o)
	case *externalsecret.ClusterExternalSecret:
		x.mu.Lock()
		x.clusters[o.Name] = o
		x.mu.Unlock()
	}
}

// putAnswer stores the state of an ExternalSecret from the answer to a patch. It does not resurrect an ExternalSecret that has been deleted
// or replaced since.
func (x *Index) putAnswer(es *externalsecret.ExternalSecret) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if earlier := x.secrets[nameOf(es)]; earlier != nil && earlier.UID == es.UID && workload.Newer(es.ResourceVersion, earlier.ResourceVersion) {
		x.add(es)
	}
}

// drop removes an object.
func (x *Index) drop(obj any) {
	switch o := obj.(type) {
	case *externalsecret.ExternalSecret:
		name := nameOf(o)
		x.mu.Lock()
		x.remove(name)
		x.mu.Unlock()
		x.inbox.markChanged(name)
	case *externalsecret.Store:
		x.putStore(nameOf(o), nil)
	case *externalsecret.ClusterExternalSecret:
		x.mu.Lock()
		delete(x.clusters, o.Name)
		x.mu.Unlock()
	}
}

// putStore replaces a store, or removes it if store is nil, and updates the readers that use it.
func (x *Index) putStore(name types.NamespacedName, store *externalsecret.Store) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if store == nil {
		delete(x.stores, name)
	} else {
		x.stores[name] = store
	}
	for user := range x.users[name] {
		x.removeKeys(user)
		x.addKeys(user, x.secrets[user])
	}
}

func (x *Index) add(es *externalsecret.ExternalSecret) {
	name := nameOf(es)
	x.remove(name)
	x.secrets[name] = es
	x.targets.add(es.Target, name)
	for _, store := range es.Stores() {
		x.users.add(store, name)
	}
	x.addKeys(name, es)
}

func (x *Index) remove(name types.NamespacedName) {
	es := x.secrets[name]
	if es == nil {
		return
	}
	delete(x.secrets, name)
	x.targets.remove(es.Target, name)
	for _, store := range es.Stores() {
		x.users.remove(store, name)
	}
	x.removeKeys(name)
}

// addKeys adds an ExternalSecret to readers under everything that it reads.
func (x *Index) addKeys(name types.NamespacedName, es *externalsecret.ExternalSecret) {
	for _, place := range es.Places(x.store) {
		x.readers.add(place.Key(), name)
		x.keys[name] = append(x.keys[name], place.Key())
	}
}

func (x *Index) removeKeys(name types.NamespacedName) {
	for _, key := range x.keys[name] {
		x.readers.remove(key, name)
	}
	delete(x.keys, name)
}

// nameOf returns the name of an object in the index.
func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// nameSets has a set of names for each key.
type nameSets[K comparable] map[K]map[types.NamespacedName]struct{}

func (n nameSets[K]) add(key K, name types.NamespacedName) {
	if n[key] == nil {
		n[key] = make(map[types.NamespacedName]struct{})
	}
	n[key][name] = struct{}{}
}

func (n nameSets[K]) remove(key K, name types.NamespacedName) {
	delete(n[key], name)
	if len(n[key]) == 0 {
		delete(n, key)
	}
}
