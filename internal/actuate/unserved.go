package actuate

import (
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// unservedFor is how long what concerns the workloads of a kind waits for the API server to serve that. A CRD that is deleted and made again, or an
// API whose server is being repaired, takes minutes or hours; one that is gone for longer is not expected back.
const unservedFor = 24 * time.Hour

// kindPlace is where a kind is listed. An empty namespace is all of them.
type kindPlace struct{ kind, namespace string }

func (p kindPlace) has(w *workload.Workload) bool {
	return w.ID.Kind == p.kind && (p.namespace == "" || w.ID.Namespace == p.namespace)
}

// unserved has the kinds that the API server does not serve, and since when that is known. Whether their workloads are there is not.
type unserved map[kindPlace]time.Time

// served has how often kinds have come to be served that were not.
type served map[kindPlace]int

// unserve records that the API server does not serve a kind.
func (x *index) unserve(place kindPlace, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.unserved[place]; !known {
		x.unserved[place] = now
	}
}

// serve records that all workloads of a kind are known.
func (x *index) serve(place kindPlace) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, was := x.unserved[place]; was {
		delete(x.unserved, place)
		x.served[place]++
	}
}

// isUnserved reports whether nobody knows if a workload is there, because its kind is not served.
func (x *index) isUnserved(key workload.Key, now time.Time) bool {
	return x.isUnservedIn(kindPlace{key.Kind, ""}, now) || x.isUnservedIn(kindPlace{key.Kind, key.Namespace}, now)
}

func (x *index) isUnservedIn(place kindPlace, now time.Time) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	since, is := x.unserved[place]
	return is && now.Sub(since) < unservedFor
}

// servedAgain returns how often each kind has come to be served that was not.
func (x *index) servedAgain() served {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.served)
}
