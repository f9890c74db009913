package inventory

import (
	"iter"
	"maps"

	"github.com/keyturn/keyturn/internal/workload"
)

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
