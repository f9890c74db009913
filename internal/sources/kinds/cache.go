package kinds

import (
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// targetIndex finds the ExternalSecrets that write a Secret, and classIndex the pod statuses of a SecretProviderClass, each by <namespace>/<name>.
const (
	targetIndex = "target"
	classIndex  = "class"
)

// Cache holds what the informers cache, by kind: one indexer for each namespace that is listed.
type Cache map[events.Kind][]cache.Indexer

// Lookup returns the object as it was last seen, or nil.
func (c Cache) Lookup(source events.Source) *Object {
	key := source.Namespace + "/" + source.Name
	for _, indexer := range c[source.Kind] {
		found, ok, err := indexer.GetByKey(key)
		if err == nil && ok {
			if seen, ok := found.(*Object); ok {
				return seen
			}
		}
	}
	return nil
}

// InNamespace lists the objects of every kind in a namespace.
func (c Cache) InNamespace(namespace string) []*Object {
	var found []*Object
	for kind := range c {
		found = append(found, c.find(kind, cache.NamespaceIndex, namespace)...)
	}
	return found
}

// writersTo lists the ExternalSecrets that have a Secret as their target.
func (c Cache) writersTo(secret events.Source) []*Object {
	return c.find(events.KindExternalSecret, targetIndex, secret.Namespace+"/"+secret.Name)
}

// podStatuses lists the statuses of the pods that have a SecretProviderClass mounted.
func (c Cache) podStatuses(class events.Source) []*Object {
	return c.find(kindPodStatus, classIndex, class.Namespace+"/"+class.Name)
}

func (c Cache) find(kind events.Kind, index, key string) []*Object {
	var list []*Object
	for _, indexer := range c[kind] {
		found, err := indexer.ByIndex(index, key)
		if err != nil {
			continue // The index exists: the informer was made with it.
		}
		for _, obj := range found {
			if seen, ok := obj.(*Object); ok {
				list = append(list, seen)
			}
		}
	}
	return list
}
