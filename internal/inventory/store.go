package inventory

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// kindScope returns the name of a kind in a namespace, or in all, for messages and readiness.
func kindScope(k workload.Kind, namespace string) string { return kube.Scope(k.Resource, namespace) }

// kindStore is the part of the index with the workloads of a kind in a namespace, or in all of them.
type kindStore struct {
	*Index
	kind      workload.Kind
	namespace string           // empty: all
	lists     *kube.FirstLists // records each list
	// seen is the newest resourceVersion up to which all states were seen. It is empty before the first list.
	seen string
	// isUnwatchable says that the workloads may not be watched, and that this was logged.
	isUnwatchable bool
}

func (s *kindStore) where() string { return kindScope(s.kind, s.namespace) }

func (s *kindStore) place() Place { return Place{s.kind.Name, s.namespace} }

// isRemoved reports whether an error means that the API server no longer serves the kind. The built-in kinds are always served.
func (s *kindStore) isRemoved(err error) bool {
	return s.kind.Custom && apierrors.IsNotFound(err)
}

// Reduce implements kube.Sink. It skips a state that is known from the response to a patch.
func (s *kindStore) Reduce(object runtime.Object) (*workload.Workload, bool) {
	if known, isSame := s.known(s.kind, object); isSame {
		return known, true
	}
	return s.Read(s.kind, object)
}

// Put implements kube.Sink.
func (s *kindStore) Put(_ context.Context, w *workload.Workload) {
	s.Written(w)
	if s.seen != "" && events.Newer(w.Version, s.seen) {
		s.seen = w.Version
	}
}

// Drop implements kube.Sink.
func (s *kindStore) Drop(_ context.Context, w *workload.Workload) {
	s.Forget(w.Key(), w.ID.UID, w.Version)
}

// Replace implements kube.Sink.
func (s *kindStore) Replace(_ context.Context, workloads []*workload.Workload, version string) {
	isFirst := s.seen == ""
	s.replaceAt(s.place(), workloads, s.seen)
	s.seen = version
	s.Serve(s.place(), version, isFirst)
	s.lists.Listed(s.where())
}

// unserve handles a kind that the API server no longer serves. Its workloads are kept, because they may still exist.
func (s *kindStore) unserve(now time.Time) {
	s.Unserve(s.place(), s.seen, now)
	s.lists.Listed(s.where())
}

// unservedFor is how long changes wait for the API server to serve a kind again. A CRD that is deleted and created again, or an API server under
// repair, is back after minutes or hours.
const unservedFor = 24 * time.Hour

// at lists the workloads at a place.
func (x *Index) at(p Place) []*workload.Workload {
	return slices.DeleteFunc(x.All(), func(w *workload.Workload) bool {
		return w.ID.Kind != p.Kind || p.Namespace != "" && w.ID.Namespace != p.Namespace
	})
}

// replaceAt records a list of a place. All earlier states were seen until since.
func (x *Index) replaceAt(place Place, workloads []*workload.Workload, since string) {
	listed := sets.New[workload.Key]()
	for _, w := range workloads {
		listed.Insert(w.Key())
		x.Listed(w, since)
	}
	for _, w := range x.at(place) {
		if !listed.Has(w.Key()) {
			x.Forget(w.Key(), w.ID.UID, since)
		}
	}
}

// Unserve records that the API server does not serve a kind. Its workloads stay, marked. Since is how far the kind was seen, empty if never.
func (x *Index) Unserve(place Place, since string, now time.Time) {
	x.mu.Lock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
	x.mu.Unlock()
	x.mark(place, false, since)
}

// Serve records that all workloads of a kind are known. Since is the resourceVersion of the list, and isFirst says that it was the first one.
func (x *Index) Serve(place Place, since string, isFirst bool) {
	x.mu.Lock()
	_, was := x.unserved[place]
	delete(x.unserved, place)
	x.mu.Unlock()
	if !was {
		return
	}
	x.mark(place, true, since)
	for _, w := range x.at(place) {
		if isFirst {
			x.options.Met(w)
		}
		x.options.Changes.WorkloadRelinked(w.Key())
	}
}

// mark marks the workloads of a kind as served or not served.
func (x *Index) mark(place Place, served bool, since string) {
	for _, w := range x.at(place) {
		x.update(w.Key(), false, func(known *workload.Workload) (*workload.Workload, string) {
			if known == nil || known.Unserved != served {
				return nil, ""
			}
			return known.Serving(served), since
		})
	}
}

// IsUnserved reports whether the kind of a workload is not served, so that it is unknown whether the workload exists. After a day without the kind,
// the workload counts as deleted.
func (x *Index) IsUnserved(key workload.Key, now time.Time) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if w := x.workloads[key]; w != nil {
		return w.Unserved
	}
	for _, place := range []Place{{key.Kind, ""}, {key.Kind, key.Namespace}} {
		if since, is := x.unserved[place]; is && now.Sub(since) < unservedFor {
			return true
		}
	}
	return false
}
