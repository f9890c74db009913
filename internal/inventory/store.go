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

// kindScope returns the name of a kind in a namespace, or in all of them, for messages and readiness.
func kindScope(k workload.Kind, namespace string) string { return kube.Scope(k.Resource, namespace) }

// kindStore is the part of the index that has the workloads of a kind in a namespace, or in all of them.
type kindStore struct {
	*Index
	kind      workload.Kind
	namespace string // empty: all
	// lists records each list. If it is nil, nothing waits for them.
	lists *kube.FirstLists
	// seen is the newest resourceVersion up to which everything was shown. It is empty if nothing was listed yet.
	seen string
	// isUnwatchable says that they may not be watched, and that this was logged.
	isUnwatchable bool
}

func (s *kindStore) where() string { return kindScope(s.kind, s.namespace) }

func (s *kindStore) place() Place { return Place{s.kind.Name, s.namespace} }

// isRemoved reports whether an error means that the API server no longer serves the kind. The built-in kinds are always served.
func (s *kindStore) isRemoved(err error) bool {
	return s.kind.Custom && apierrors.IsNotFound(err)
}

// Reduce implements kube.Sink. What the answer to a patch has shown is not read once more.
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
	s.synced()
}

func (s *kindStore) synced() {
	if s.lists != nil {
		s.lists.Listed(s.where())
	}
}

// unserve is called when the API server no longer serves the kind. Its workloads are kept, because they may still be there.
func (s *kindStore) unserve(now time.Time) {
	s.Unserve(s.place(), s.seen, now)
	s.synced()
}

// unservedFor is how long what concerns the workloads of a kind waits for the API server to serve that. A CRD that is deleted and made again, or an
// API whose server is being repaired, takes minutes or hours; one that is gone for longer is not expected back.
const unservedFor = 24 * time.Hour

// at lists the workloads that are listed at a place.
func (x *Index) at(p Place) []*workload.Workload {
	return slices.DeleteFunc(x.All(), func(w *workload.Workload) bool {
		return w.ID.Kind != p.Kind || p.Namespace != "" && w.ID.Namespace != p.Namespace
	})
}

// replaceAt records a list of a place, of which everything was seen until since.
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

// Unserve records that the API server does not serve a kind, which was seen until since, or never if empty. Its workloads stay, and are marked.
func (x *Index) Unserve(place Place, since string, now time.Time) {
	x.mu.Lock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
	x.mu.Unlock()
	x.mark(place, false, since)
}

// Serve records that all workloads of a kind are known. Since is how far the kind was seen, and isFirst whether it was never seen before.
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

// mark marks the workloads of a kind as those of one that is served, or is not.
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

// IsUnserved reports whether the kind of a workload is not served, so that it is not known whether the workload exists. After a day without the kind,
// the workload counts as gone.
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
