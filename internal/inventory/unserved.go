package inventory

import (
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// unservedFor is how long what concerns the workloads of a kind waits for the API server to serve that. A CRD that is deleted and made again, or an
// API whose server is being repaired, takes minutes or hours; one that is gone for longer is not expected back.
const unservedFor = 24 * time.Hour

// Place is where a kind is listed. An empty namespace is all of them.
type Place struct{ Kind, Namespace string }

// has reports whether a workload is listed there.
func (p Place) has(w *workload.Workload) bool {
	return w.ID.Kind == p.Kind && (p.Namespace == "" || w.ID.Namespace == p.Namespace)
}

// Unserve records that the API server does not serve a kind. Its workloads stay as they were, and are marked. Since is how far the kind was seen,
// empty if it was not.
func (x *Index) Unserve(place Place, since string, now time.Time) {
	x.mu.Lock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
	x.mu.Unlock()
	x.mark(place, false, since)
}

// Serve records that all workloads of a kind are known. Since is how far the kind was seen.
func (x *Index) Serve(place Place, since string) {
	x.mu.Lock()
	_, was := x.unserved[place]
	delete(x.unserved, place)
	x.mu.Unlock()
	if !was {
		return
	}
	x.mark(place, true, since)
	for _, w := range x.All() {
		if place.has(w) {
			x.returned(w.Key())
		}
	}
}

// mark marks the workloads of a kind as those of one that is served, or is not.
func (x *Index) mark(place Place, served bool, since string) {
	for _, w := range x.All() {
		if !place.has(w) {
			continue
		}
		x.mu.Lock()
		if w = x.workloads[w.Key()]; w == nil || w.Unserved != served {
			x.mu.Unlock()
			continue
		}
		x.replace(w, w.Serving(served), false, since) // It unlocks.
	}
}

// IsUnserved reports whether nobody knows what has become of a workload, because its kind is not served. After a day without the kind, it is gone.
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
