package forcesync

import "k8s.io/apimachinery/pkg/types"

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
