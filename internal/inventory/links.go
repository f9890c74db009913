package inventory

import (
	"maps"
	"slices"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// links maps what workloads are found by to the workloads.
type links[By comparable] map[By]linked

// linked is a set of workloads. Most sources are read by few, for which a map would take half a kilobyte and more; some are read by thousands.
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

// Dependents lists the workloads that a source may concern, in no order. Its cost is proportional to their number.
func (x *Index) Dependents(source events.Source) []*workload.Workload {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := make(map[workload.Key]*workload.Workload)
	for _, name := range workload.Spellings(source) {
		for _, key := range x.bySource.of(workload.SourceNamed(source.Kind, source.Namespace, name)) {
			found[key] = x.workloads[key]
		}
	}
	for _, key := range x.byPattern.of(source.Namespace) {
		if w := x.workloads[key]; w.OptIn.HasPatterns(source.Kind) {
			found[key] = w
		}
	}
	return slices.Collect(maps.Values(found))
}

// replace puts a state in the place of an earlier one of the same workload, which may be nil. Most writes change nothing that it is found by.
func (x *Index) replace(earlier, w *workload.Workload) {
	if earlier != nil && w.IsFoundAs(earlier) {
		x.workloads[w.Key()] = w
		return
	}
	x.remove(earlier)
	x.add(w)
}

func (x *Index) add(w *workload.Workload) {
	key := w.Key()
	x.workloads[key] = w
	if w.Wave != 0 {
		x.waves.add(key.Namespace, key)
	}
	if through := w.Through(); through != (workload.Key{}) {
		x.runners.add(through, key)
	}
	if w.OptIn.Empty() {
		return
	}
	for _, source := range w.Sources() {
		x.bySource.add(source, key)
	}
	for _, kind := range events.SourceKinds() {
		if w.OptIn.HasPatterns(kind) {
			x.byPattern.add(workload.SourceNamed(kind, key.Namespace, "").Namespace, key)
		}
	}
}

func (x *Index) remove(w *workload.Workload) {
	if w == nil {
		return
	}
	key := w.Key()
	delete(x.workloads, key)
	x.waves.remove(key.Namespace, key)
	x.runners.remove(w.Through(), key)
	for _, source := range w.Sources() {
		x.bySource.remove(source, key)
	}
	for _, namespace := range []string{key.Namespace, ""} {
		x.byPattern.remove(namespace, key)
	}
}
