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
		if seen := store.get(nameIn(source)); seen != nil {
			return seen
		}
	}
	return nil
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
		list = append(list, store.of(nameIn(target))...)
	}
	return list
}

// Store contains the objects of one kind in one namespace, or in all namespaces. It is safe for concurrent use.
type Store struct {
	mu       sync.RWMutex
	objects  map[types.NamespacedName]*Object
	byTarget map[types.NamespacedName][]*Object // see Object.target
}

// NewStore returns a store without objects.
func NewStore() *Store {
	s := &Store{}
	s.Replace(nil)
	return s
}

// Put stores the state of an object, and returns the state before, or nil.
func (s *Store) Put(now *Object) (before *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(now)
}

func (s *Store) put(now *Object) (before *Object) {
	before = s.drop(nameIn(now.Source))
	s.objects[nameIn(now.Source)] = now
	if target := now.target(); target.Name != "" {
		s.byTarget[target] = append(s.byTarget[target], now)
	}
	return before
}

// Drop removes an object, and reports whether it was stored.
func (s *Store) Drop(gone *Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drop(nameIn(gone.Source)) != nil
}

func (s *Store) drop(name types.NamespacedName) *Object {
	known := s.objects[name]
	if known == nil {
		return nil
	}
	delete(s.objects, name)
	if target := known.target(); target.Name != "" {
		// A copy, because readers may have the list.
		s.byTarget[target] = slices.DeleteFunc(slices.Clone(s.byTarget[target]), func(o *Object) bool { return o == known })
		if len(s.byTarget[target]) == 0 {
			delete(s.byTarget, target)
		}
	}
	return known
}

// Replace stores only the objects, and returns those that were stored before.
func (s *Store) Replace(objects []*Object) (before []*Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.objects {
		before = append(before, known)
	}
	s.objects = make(map[types.NamespacedName]*Object, len(objects))
	s.byTarget = make(map[types.NamespacedName][]*Object)
	for _, now := range objects {
		s.put(now)
	}
	return before
}

func (s *Store) get(name types.NamespacedName) *Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[name]
}

func (s *Store) in(namespace string) []*Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []*Object
	for name, seen := range s.objects {
		if name.Namespace == namespace {
			found = append(found, seen)
		}
	}
	return found
}

func (s *Store) of(target types.NamespacedName) []*Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byTarget[target]
}

func nameIn(source events.Source) types.NamespacedName {
	return types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
}

// target returns the Secret that an ExternalSecret writes, or the class that the status of a pod belongs to. It has no name for any other object.
func (o *Object) target() types.NamespacedName {
	target := types.NamespacedName{Namespace: o.Source.Namespace}
	switch rare := o.rare(); {
	case rare.mounted != nil:
		target.Name = rare.mounted.class.Name
	case o.Source.Kind == events.KindExternalSecret && rare.status != nil:
		target.Name = rare.status.fields.Secret
	}
	return target
}
