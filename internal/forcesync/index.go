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

// Index has the ExternalSecrets and their stores, and finds the ExternalSecrets that read a path of a secret store. A Watch feeds it. It collects for
// a Syncer what has changed, and the answers to its patches. It is safe for concurrent use.
type Index struct {
	// signal is readable when something was collected.
	signal chan struct{}

	mu       sync.RWMutex
	secrets  map[types.NamespacedName]*externalsecret.ExternalSecret
	clusters map[string]*externalsecret.ClusterExternalSecret
	stores   map[types.NamespacedName]*externalsecret.Store
	// readers has the ExternalSecrets by what they read, users by the stores that they name, templates by what their templates name, and targets by
	// what they write.
	readers            nameSets[externalsecret.Key]
	users              nameSets[types.NamespacedName]
	templates, targets nameSets[events.Source]
	// changed has the names of the ExternalSecrets that were changed or deleted. It is nil while there is no Syncer: nothing is collected then.
	changed map[types.NamespacedName]struct{}
	answers []answer
}

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{
		signal:    make(chan struct{}, 1),
		secrets:   make(map[types.NamespacedName]*externalsecret.ExternalSecret),
		clusters:  make(map[string]*externalsecret.ClusterExternalSecret),
		stores:    make(map[types.NamespacedName]*externalsecret.Store),
		readers:   make(nameSets[externalsecret.Key]),
		users:     make(nameSets[types.NamespacedName]),
		templates: make(nameSets[events.Source]),
		targets:   make(nameSets[events.Source]),
	}
}

// attend begins to collect for a Syncer. All known ExternalSecrets count as changed.
func (x *Index) attend() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changed = make(map[types.NamespacedName]struct{}, len(x.secrets))
	for name := range x.secrets {
		x.mark(name)
	}
}

// leave drops what was not taken, and everything that comes later.
func (x *Index) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changed, x.answers = nil, nil
}

// take returns what was collected, and forgets it.
func (x *Index) take() (changed map[types.NamespacedName]struct{}, answers []answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	changed, answers = x.changed, x.answers
	if x.answers = nil; changed != nil {
		x.changed = make(map[types.NamespacedName]struct{})
	}
	return changed, answers
}

// mark collects an ExternalSecret that has changed.
func (x *Index) mark(name types.NamespacedName) {
	if x.changed != nil {
		x.changed[name] = struct{}{}
		x.alert()
	}
}

// alert signals that something was collected.
func (x *Index) alert() {
	select {
	case x.signal <- struct{}{}:
	default: // signaled already
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

// linked lists the ExternalSecrets that have a Secret or a ConfigMap in their templates, or as their targets, in no order.
func (x *Index) linked(by nameSets[events.Source], source events.Source) []*externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var list []*externalsecret.ExternalSecret
	for name := range by[source] {
		list = append(list, x.secrets[name])
	}
	return list
}

// templateSources lists what templates name, in no order.
func (x *Index) templateSources() []events.Source {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.templates))
}

// dependents lists the ExternalSecrets that read what a rotation wrote, sorted by namespace and name. Its cost depends only on the number
// of ExternalSecrets that read the path or search its mount.
func (x *Index) dependents(r externalsecret.Rotation) []*externalsecret.ExternalSecret {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.DeleteFunc(x.near(r), func(es *externalsecret.ExternalSecret) bool { return !es.Reads(x.store, r) })
}

// elsewhere returns ExternalSecrets that read what a rotation wrote at an address that is not of its store, one for each such address.
func (x *Index) elsewhere(r externalsecret.Rotation) map[string]types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := make(map[string]types.NamespacedName)
	for _, es := range x.near(r) {
		if server, ok := es.ReadsElsewhere(x.store, r); ok {
			found[server] = nameOf(es)
		}
	}
	return found
}

// near lists the ExternalSecrets that read or search the path of a rotation in any store, sorted by namespace and name.
func (x *Index) near(r externalsecret.Rotation) []*externalsecret.ExternalSecret {
	var list []*externalsecret.ExternalSecret
	for _, key := range r.Keys() {
		for name := range x.readers[key] {
			list = append(list, x.secrets[name])
		}
	}
	slices.SortFunc(list, func(a, b *externalsecret.ExternalSecret) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
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
	x.mu.Lock()
	defer x.mu.Unlock()
	switch o := obj.(type) {
	case *externalsecret.ExternalSecret:
		if earlier := x.secrets[nameOf(o)]; earlier == nil || earlier.UID != o.UID || events.Newer(o.ResourceVersion, earlier.ResourceVersion) {
			x.set(nameOf(o), o)
		}
	case *externalsecret.Store:
		x.setStore(nameOf(o), o)
	case *externalsecret.ClusterExternalSecret:
		x.clusters[o.Name] = o
	}
}

// drop removes an object.
func (x *Index) drop(obj any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch o := obj.(type) {
	case *externalsecret.ExternalSecret:
		x.set(nameOf(o), nil)
	case *externalsecret.Store:
		x.setStore(nameOf(o), nil)
	case *externalsecret.ClusterExternalSecret:
		delete(x.clusters, o.Name)
	}
}

// answer collects the answer to a patch. It does not resurrect an ExternalSecret that has been deleted or replaced since.
func (x *Index) answer(a answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if es := a.after; es != nil {
		if earlier := x.secrets[nameOf(es)]; earlier != nil && earlier.UID == es.UID && events.Newer(es.ResourceVersion, earlier.ResourceVersion) {
			x.set(nameOf(es), es)
		}
	}
	x.answers = append(x.answers, a)
	x.alert()
}

// set replaces an ExternalSecret, or removes it if es is nil.
func (x *Index) set(name types.NamespacedName, es *externalsecret.ExternalSecret) {
	if earlier := x.secrets[name]; earlier != nil {
		delete(x.secrets, name)
		x.templates.remove(name, earlier.Templates...)
		x.targets.remove(name, earlier.Target)
		x.users.remove(name, earlier.Stores()...)
		x.readers.remove(name, x.keys(earlier)...)
	}
	if es != nil {
		x.secrets[name] = es
		x.templates.add(name, es.Templates...)
		x.targets.add(name, es.Target)
		x.users.add(name, es.Stores()...)
		x.readers.add(name, x.keys(es)...)
	}
	x.mark(name)
}

// setStore replaces a store, or removes it if store is nil, and updates the readers that use it.
func (x *Index) setStore(name types.NamespacedName, store *externalsecret.Store) {
	for user := range x.users[name] {
		x.readers.remove(user, x.keys(x.secrets[user])...)
	}
	if store == nil {
		delete(x.stores, name)
	} else {
		x.stores[name] = store
	}
	for user := range x.users[name] {
		x.readers.add(user, x.keys(x.secrets[user])...)
	}
}

// keys returns the keys of what an ExternalSecret reads, as far as its stores are known.
func (x *Index) keys(es *externalsecret.ExternalSecret) []externalsecret.Key {
	var keys []externalsecret.Key
	for _, place := range es.Places(x.store) {
		keys = append(keys, place.Key())
	}
	return keys
}

// nameOf returns the name of an object in the index.
func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// nameSets has a set of names for each key.
type nameSets[K comparable] map[K]map[types.NamespacedName]struct{}

func (n nameSets[K]) add(name types.NamespacedName, keys ...K) {
	for _, key := range keys {
		if n[key] == nil {
			n[key] = make(map[types.NamespacedName]struct{})
		}
		n[key][name] = struct{}{}
	}
}

func (n nameSets[K]) remove(name types.NamespacedName, keys ...K) {
	for _, key := range keys {
		if delete(n[key], name); len(n[key]) == 0 {
			delete(n, key)
		}
	}
}
