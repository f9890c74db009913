package kinds

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Cache contains the cached objects, by kind: one store for each listed namespace.
type Cache map[events.Kind][]*Store

// Lookup returns the object in its last seen state, or nil.
func (c Cache) Lookup(source events.Source) *Object {
	for _, store := range c[source.Kind] {
		if seen := store.Get(source); seen != nil {
			return seen
		}
	}
	return nil
}

// Has reports whether the object is cached.
func (c Cache) Has(source events.Source) bool {
	return slices.ContainsFunc(c[source.Kind], func(store *Store) bool { return store.Has(source) })
}

// InNamespace lists the objects of every kind in a namespace.
func (c Cache) InNamespace(namespace string) []*Object {
	var found []*Object
	for _, stores := range c {
		for _, store := range stores {
			found = append(found, store.in(namespace)...)
		}
	}
	return found
}

// writersTo lists the ExternalSecrets that have a Secret as their target.
func (c Cache) writersTo(secret events.Source) []*Object {
	return c.of(events.KindExternalSecret, secret)
}

// podStatuses lists the statuses of pods that mount a SecretProviderClass.
func (c Cache) podStatuses(class events.Source) []*Object { return c.of(kindPodStatus, class) }

// of lists the objects of a kind that have the target.
func (c Cache) of(kind events.Kind, target events.Source) []*Object {
	var list []*Object
	for _, store := range c[kind] {
		list = append(list, store.of(types.NamespacedName{Namespace: target.Namespace, Name: target.Name})...)
	}
	return list
}

// Settle keeps a cached object without the part that the last event of its source also shows.
func (c Cache) Settle(source events.Source, last *LastEvent) {
	for _, store := range c[source.Kind] {
		store.settle(source, last)
	}
}

// Store contains the objects of one kind in one namespace, or in all namespaces. It is safe for concurrent use.
type Store struct {
	kind events.Kind

	mu       sync.RWMutex
	objects  map[string]map[string]cachedObject // by namespace and name
	byTarget map[types.NamespacedName][]*Object
}

// NewStore returns a store without objects.
func NewStore(kind events.Kind) *Store {
	return &Store{kind: kind, objects: make(map[string]map[string]cachedObject), byTarget: make(map[types.NamespacedName][]*Object)}
}

// Put stores the state of an object, and returns the state before, or nil.
func (s *Store) Put(now *Object) (before *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.objects[now.Source.Namespace]
	if in == nil {
		in = make(map[string]cachedObject)
		s.objects[now.Source.Namespace] = in
	}
	if known := in[now.Source.Name]; known != nil {
		before = known.object(now.Source)
	}
	in[now.Source.Name] = now
	s.retarget(before, now)
	return before
}

func (s *Store) settle(source events.Source, last *LastEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch in := s.objects[source.Namespace]; known := in[source.Name].(type) {
	case *Object:
		in[known.Source.Name] = settle(known, last) // The other name may be part of a longer text, which a map's key would keep.
	case *settled: // In place, so that it keeps its name.
		if again, ok := settle(known.object(source), last).(*settled); ok {
			*known = *again
		}
	}
}

// Drop removes an object, and reports whether it was stored.
func (s *Store) Drop(source events.Source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.objects[source.Namespace]
	known := in[source.Name]
	if known == nil {
		return false
	}
	delete(in, source.Name)
	if len(in) == 0 {
		delete(s.objects, source.Namespace)
	}
	s.retarget(known.object(source), nil)
	return true
}

// retarget replaces a state of an object in byTarget. Both may be nil. It compares addresses, which are new each time an object is made of a settled
// one. No object with a target is settled: an ExternalSecret has no fingerprints, and the status of a pod has no events.
func (s *Store) retarget(before, now *Object) {
	if target := before.target(); target.Name != "" {
		// A copy, because readers may have the list.
		s.byTarget[target] = slices.DeleteFunc(slices.Clone(s.byTarget[target]), func(o *Object) bool { return o == before })
		if len(s.byTarget[target]) == 0 {
			delete(s.byTarget, target)
		}
	}
	if target := now.target(); target.Name != "" {
		s.byTarget[target] = append(s.byTarget[target], now)
	}
}

// Sources lists the sources of the stored objects.
func (s *Store) Sources() []events.Source {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []events.Source
	for namespace, in := range s.objects {
		for name := range in {
			list = append(list, events.Source{Kind: s.kind, Namespace: namespace, Name: name})
		}
	}
	return list
}

// Has reports whether an object is stored.
func (s *Store) Has(source events.Source) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[source.Namespace][source.Name] != nil
}

// Get returns the last state of an object, or nil.
func (s *Store) Get(source events.Source) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if known := s.objects[source.Namespace][source.Name]; known != nil {
		return known.object(source)
	}
	return nil
}

// Replace stores only the objects, and returns a store of what was stored before.
func (s *Store) Replace(objects []*Object) (before *Store) {
	other := NewStore(s.kind)
	for _, now := range objects {
		other.Put(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, now := range objects {
		if known, ok := s.objects[now.Source.Namespace][now.Source.Name].(*settled); ok {
			other.settle(now.Source, known.shown)
		}
	}
	s.objects, other.objects = other.objects, s.objects
	s.byTarget, other.byTarget = other.byTarget, s.byTarget
	return other
}

// in lists the objects in a namespace.
func (s *Store) in(namespace string) []*Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*Object
	for name, known := range s.objects[namespace] {
		list = append(list, known.object(events.Source{Kind: s.kind, Namespace: namespace, Name: name}))
	}
	return list
}

func (s *Store) of(target types.NamespacedName) []*Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byTarget[target]
}

// target returns the Secret that an ExternalSecret writes, or the class that the status of a pod belongs to. It has no name for any other object.
func (o *Object) target() types.NamespacedName {
	if o == nil {
		return types.NamespacedName{}
	}
	target := types.NamespacedName{Namespace: o.Source.Namespace}
	switch rare := o.rare(); {
	case rare.mounted != nil:
		target.Name = rare.mounted.class.Name
	case o.Source.Kind == events.KindExternalSecret && rare.status != nil:
		target.Name = rare.status.fields.Secret
	}
	return target
}
