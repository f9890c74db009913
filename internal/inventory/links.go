package inventory

import (
	"iter"
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/workload"
)

// links is an index of workloads.
type links[By comparable] map[By]linked

// linked is a set of workloads. Most sources have few readers, for which a map would take half a kilobyte or more; some have thousands.
type linked struct {
	few  []workload.Key
	many map[workload.Key]struct{} // all of them, if they are more than maxFew
}

const maxFew = 8

func (l links[By]) add(by By, key workload.Key) {
	of := l[by]
	switch {
	case of.many != nil:
		of.many[key] = struct{}{}
	case slices.Contains(of.few, key):
		return
	case len(of.few) < maxFew:
		of.few = append(of.few, key)
	default:
		of.many = map[workload.Key]struct{}{key: {}}
		for _, key := range of.few {
			of.many[key] = struct{}{}
		}
		of.few = nil
	}
	l[by] = of
}

func (l links[By]) remove(by By, key workload.Key) {
	of := l[by]
	delete(of.many, key)
	of.few = slices.DeleteFunc(of.few, func(linked workload.Key) bool { return linked == key })
	if l[by] = of; len(of.few)+len(of.many) == 0 {
		delete(l, by)
	}
}

// all returns the workloads, in no order.
func (of linked) all() iter.Seq[workload.Key] {
	if of.many != nil {
		return maps.Keys(of.many)
	}
	return slices.Values(of.few)
}

func (of linked) has(key workload.Key) bool {
	_, isOne := of.many[key]
	return isOne || slices.Contains(of.few, key)
}
