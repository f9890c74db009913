package actuate

import (
	"time"

	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// reloaderPause is how long Reloader must have rolled nothing before it is assumed to have finished. Its rolls for one change are 0.2 seconds
	// apart, and the times of its writes are known to the second.
	reloaderPause = 5 * time.Second
	// reloaderPatience is how long a change waits for that at most.
	reloaderPatience = time.Minute
	// reloaderMemory is how long a namespace counts as one of Reloader's after it has rolled something there.
	reloaderMemory = 10 * time.Minute
)

// besideReloader knows where Reloader rolls workloads, beside this actuator. Reloader is left to roll first: the plan recognizes what Reloader has
// rolled, but Reloader does not check what others have rolled. Without --reloader, its rolls are not known, and nobody waits.
type besideReloader struct {
	*term
	// last is when the newest of them was seen, and by has the newest of each namespace.
	last time.Time
	by   map[string]reloaderRoll
}

// reloaderRoll is when Reloader wrote a workload by the API server's clock, to the second, and when that was seen. It was not if it is older than
// the term of the leader.
type reloaderRoll struct{ written, seen time.Time }

// review looks at a workload that has changed or gone. If it is left to Reloader, Reloader may have rolled it.
func (r *besideReloader) review(key workload.Key) {
	if w := r.index.Get(key); w != nil && r.see(w, r.now()) {
		r.last = r.now()
	}
	if !r.index.HasAny(key.Namespace) {
		delete(r.by, key.Namespace)
	}
	r.debounce.releaseFrom(key, plan.ReloaderFirst)
}

// see reports whether Reloader has written a workload since the last one of its namespace. At is the zero time if that does not count as new.
func (r *besideReloader) see(w *workload.Workload, at time.Time) bool {
	if !w.Reloaded.After(r.by[w.ID.Namespace].written) {
		return false
	}
	r.by[w.ID.Namespace] = reloaderRoll{w.Reloaded, at}
	return true
}

// end returns until when workloads of a namespace are left to Reloader, and whether that is still to come, for changes that wait since a time.
// Reloader works on one change after the other, in whatever namespace they are.
func (r *besideReloader) end(namespace string, since time.Time) (time.Time, bool) {
	now, seen := r.now(), r.by[namespace].seen
	if seen.IsZero() || now.Sub(seen) > reloaderMemory {
		return time.Time{}, false
	}
	end := r.last.Add(reloaderPause)
	if latest := since.Add(reloaderPatience); end.After(latest) {
		end = latest
	}
	return end, now.Before(end)
}
