package inventory

import (
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// unservedFor is how long what concerns the workloads of a kind waits for the API server to serve that. A CRD that is deleted and made again, or an
// API whose server is being repaired, takes minutes or hours; one that is gone for longer is not expected back.
const unservedFor = 24 * time.Hour

// Place is where a kind is listed. An empty namespace is all of them.
type Place struct{ Kind, Namespace string }

// Has reports whether a workload is listed there.
func (p Place) Has(w *workload.Workload) bool {
	return w.ID.Kind == p.Kind && (p.Namespace == "" || w.ID.Namespace == p.Namespace)
}

// unserved has the kinds that the API server does not serve, and since when that is known. Whether their workloads are there is not.
type unserved map[Place]time.Time

// served has how often kinds have come to be served that were not.
type served map[Place]int

// Unserve records that the API server does not serve a kind.
func (x *Index) Unserve(place Place, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
}

// Serve records that all workloads of a kind are known.
func (x *Index) Serve(place Place) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, was := x.unserved[place]; was {
		delete(x.unserved, place)
		x.served[place]++
	}
}

// IsUnserved reports whether nobody knows if a workload is there, because its kind is not served. After a day without the kind, it is gone.
func (x *Index) IsUnserved(key workload.Key, now time.Time) bool {
	return x.isUnservedIn(Place{key.Kind, ""}, now) || x.isUnservedIn(Place{key.Kind, key.Namespace}, now)
}

func (x *Index) isUnservedIn(place Place, now time.Time) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	since, is := x.unserved[place]
	return is && now.Sub(since) < unservedFor
}

// ServedAgain returns how often each kind has come to be served that was not.
func (x *Index) ServedAgain() map[Place]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.served)
}
