package inventory

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// kindStore is the index as the store of one reflector. It distinguishes events of a watch, each of which is one write, from the results of
// lists; informers do not.
type kindStore struct {
	*Index
	kind      workload.Kind
	namespace string // empty: all
	synced    func()
	// seen is the newest resourceVersion up to which everything was shown. It is empty if nothing was listed yet.
	seen string
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
	return s.Read(s.kind, object)
}

// Transformer makes the reflector keep workloads instead of whole objects while it collects a streamed list.
func (s *kindStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if w, ok := s.workload(obj); ok {
			return w, nil
		}
		return obj, nil
	}
}

// Add is called with an object that was created, by a watch.
func (s *kindStore) Add(obj any) error { return s.Update(obj) }

// Update is called with an object that was written, by a watch.
func (s *kindStore) Update(obj any) error {
	if w, ok := s.workload(obj); ok {
		s.Written(w)
		s.see(w.Version)
	}
	return nil
}

// see records how far the watch has come.
func (s *kindStore) see(version string) {
	if s.seen != "" && events.Newer(version, s.seen) {
		s.seen = version
	}
}

// Delete is called with an object that was deleted, by a watch.
func (s *kindStore) Delete(obj any) error {
	if w, ok := s.workload(obj); ok {
		s.Forget(w.Key(), w.ID.UID, w.Version)
	}
	return nil
}

// Replace is called with the result of a list.
func (s *kindStore) Replace(list []any, version string) error {
	s.replace(list, version)
	s.Serve(s.place(), version)
	s.synced()
	return nil
}

func (s *kindStore) replace(list []any, version string) {
	listed := make(map[workload.Key]struct{}, len(list))
	for _, obj := range list {
		if w, ok := s.workload(obj); ok {
			listed[w.Key()] = struct{}{}
			s.Listed(w, s.seen)
		}
	}
	for _, w := range s.All() {
		key := w.Key()
		if key.Kind != s.kind.Name || s.namespace != "" && key.Namespace != s.namespace {
			continue
		}
		if _, ok := listed[key]; !ok {
			s.Forget(key, w.ID.UID, s.seen)
		}
	}
	s.seen = version
}

// unserve is called when the API server no longer serves the kind. Its workloads are kept, because they may still be there.
func (s *kindStore) unserve(now time.Time) {
	s.Unserve(s.place(), s.seen, now)
	s.synced()
}

// forget is called when the kind is not expected back. It keeps how far the kind was seen, because later changes were not decided for workloads that
// come back with the kind nevertheless.
func (s *kindStore) forget() { s.replace(nil, s.seen) }

func (s *kindStore) place() Place { return Place{s.kind.Name, s.namespace} }

// Resync does nothing: the index keeps nothing that would have to be repeated.
func (s *kindStore) Resync() error { return nil }
