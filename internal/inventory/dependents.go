package inventory

import (
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// Dependents lists the workloads that a source may concern, in no order. Its cost is proportional to their number.
func (x *Index) Dependents(source events.Source) []*workload.Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var named []keySet
	count := 0
	for _, name := range workload.Spellings(source) {
		set := x.bySource[workload.SourceNamed(source.Kind, source.Namespace, name)]
		named, count = append(named, set), count+set.len()
	}
	list := make([]*workload.Workload, 0, count)
	for i, set := range named {
		for key := range set.all() {
			if !isIn(key, named[:i]) {
				list = append(list, x.workloads[key])
			}
		}
	}
	for key := range x.byPattern[source.Namespace] {
		if w := x.workloads[key]; w.OptIn.HasPatterns(source.Kind) && !isIn(key, named) {
			list = append(list, w)
		}
	}
	return list
}

func isIn(key workload.Key, sets []keySet) bool {
	return slices.ContainsFunc(sets, func(set keySet) bool { return set.has(key) })
}
