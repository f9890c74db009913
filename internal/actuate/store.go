package actuate

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/workload"
)

// kindStore is the index as the store of one reflector. It tells watch events, of which each is one write, from the
// results of lists; informers do not.
type kindStore struct {
	*index
	kind      workload.Kind
	namespace string // empty: all
	synced    func()
}

var _ cache.TransformingStore = (*kindStore)(nil)

func (s *kindStore) workload(obj any) (*workload.Workload, bool) {
	if w, ok := obj.(*workload.Workload); ok {
		return w, true
	}
	object, ok := obj.(runtime.Object)
	if !ok {
		return nil, false
	}
	return s.index.read(s.kind, object)
}

// Transformer has the reflector keep workloads, not whole objects, while it gathers a streamed list.
func (s *kindStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if w, ok := s.workload(obj); ok {
			return w, nil
		}
		return obj, nil
	}
}

// Add takes an object that a watch says was created.
func (s *kindStore) Add(obj any) error { return s.Update(obj) }

// Update takes an object that a watch says was written.
func (s *kindStore) Update(obj any) error {
	if w, ok := s.workload(obj); ok {
		s.observe(w, true)
	}
	return nil
}

// Delete takes an object that a watch says was deleted.
func (s *kindStore) Delete(obj any) error {
	if w, ok := s.workload(obj); ok {
		s.forget(w.Key(), w.ID.UID)
	}
	return nil
}

// Replace takes all objects that there are.
func (s *kindStore) Replace(list []any, _ string) error {
	listed := make(map[workload.Key]struct{}, len(list))
	for _, obj := range list {
		if w, ok := s.workload(obj); ok {
			listed[w.Key()] = struct{}{}
			s.observe(w, false)
		}
	}
	for _, w := range s.all() {
		key := w.Key()
		if key.Kind != s.kind.Name || s.namespace != "" && key.Namespace != s.namespace {
			continue
		}
		if _, ok := listed[key]; !ok {
			s.forget(key, w.ID.UID)
		}
	}
	s.synced()
	return nil
}

// Resync does nothing: there is nothing that would have to be told twice.
func (s *kindStore) Resync() error { return nil }
