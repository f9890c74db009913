package inventory

import (
	"iter"
	"maps"
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

func (x *Index) add(w *workload.Workload) {
	key := w.Key()
	x.workloads[key] = w
	x.spaces[key.Namespace]++
	if through := w.Through(); through != (workload.Key{}) {
		if x.runners[through] == nil {
			x.runners[through] = make(map[workload.Key]struct{})
		}
		x.runners[through][key] = struct{}{}
	}
	if w.Wave != 0 {
		x.waves[key.Namespace]++
	}
	if w.OptIn.Empty() {
		return
	}
	for _, source := range w.Sources() {
		x.bySource[source] = x.bySource[source].with(key)
	}
	for _, kind := range events.SourceKinds() {
		if !w.OptIn.HasPatterns(kind) {
			continue
		}
		namespace := workload.SourceNamed(kind, key.Namespace, "").Namespace
		if x.byPattern[namespace] == nil {
			x.byPattern[namespace] = make(map[workload.Key]struct{})
		}
		x.byPattern[namespace][key] = struct{}{}
	}
}

func (x *Index) remove(w *workload.Workload) {
	if w == nil {
		return
	}
	key := w.Key()
	delete(x.workloads, key)
	if x.spaces[key.Namespace]--; x.spaces[key.Namespace] == 0 {
		delete(x.spaces, key.Namespace)
	}
	delete(x.runners[w.Through()], key)
	if len(x.runners[w.Through()]) == 0 {
		delete(x.runners, w.Through())
	}
	if w.Wave != 0 {
		if x.waves[key.Namespace]--; x.waves[key.Namespace] == 0 {
			delete(x.waves, key.Namespace)
		}
	}
	for _, source := range w.Sources() {
		if left := x.bySource[source].without(key); left.len() > 0 {
			x.bySource[source] = left
		} else {
			delete(x.bySource, source)
		}
	}
	for _, namespace := range []string{key.Namespace, ""} {
		delete(x.byPattern[namespace], key)
		if len(x.byPattern[namespace]) == 0 {
			delete(x.byPattern, namespace)
		}
	}
}

// keySet is a set of workloads. Most sources are read by one workload, for which a map would take half a kilobyte. The zero value is empty.
type keySet struct {
	// one is the only workload, or the zero Key if there is none. It is ignored once there is many, which has all of them.
	one  workload.Key
	many map[workload.Key]struct{}
}

// with returns the set with a workload. The set itself must not be used any more.
func (s keySet) with(key workload.Key) keySet {
	switch {
	case s.many != nil:
		s.many[key] = struct{}{}
	case s.len() == 0 || s.one == key:
		s.one = key
	default:
		s = keySet{many: map[workload.Key]struct{}{s.one: {}, key: {}}}
	}
	return s
}

// without returns the set without a workload. The set itself must not be used any more.
func (s keySet) without(key workload.Key) keySet {
	if s.many != nil {
		delete(s.many, key)
	} else if s.one == key {
		s.one = workload.Key{}
	}
	return s
}

func (s keySet) has(key workload.Key) bool {
	if s.many != nil {
		_, ok := s.many[key]
		return ok
	}
	return s.len() > 0 && s.one == key
}

func (s keySet) len() int {
	switch {
	case s.many != nil:
		return len(s.many)
	case s.one == workload.Key{}:
		return 0
	}
	return 1
}

// all lists the workloads, in no order.
func (s keySet) all() iter.Seq[workload.Key] {
	if s.many != nil {
		return maps.Keys(s.many)
	}
	return func(yield func(workload.Key) bool) {
		if s.len() > 0 {
			yield(s.one)
		}
	}
}
