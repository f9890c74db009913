package inventory

import (
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

// of lists the workloads, in no order.
func (l links[By]) of(by By) []workload.Key {
	return slices.AppendSeq(slices.Clone(l[by].few), maps.Keys(l[by].many))
}
