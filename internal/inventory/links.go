package inventory

import (
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

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
