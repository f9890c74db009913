package project

import (
	"slices"
	"sync"
)

// maxRetrying is how many workers may deal with resources that have failed. A webhook that does not answer blocks each of them for up to
// kube.PatchTimeout, and the other workers are left to the other resources.
const maxRetrying = workers / 2

// retries are the resources that have failed and are due again. The zero value is ready to use.
type retries struct {
	mu      sync.Mutex
	busy    int
	waiting []key
}

// begin reports whether a resource may be dealt with now. If so, the caller must call end afterwards. If not, the resource waits for another's end.
func (r *retries) begin(k key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, k)
	if r.busy == maxRetrying {
		if at < 0 {
			r.waiting = append(r.waiting, k)
		}
		return false
	}
	if at >= 0 {
		r.waiting = slices.Delete(r.waiting, at, at+1)
	}
	r.busy++
	return true
}

// end returns the resource that has waited longest, if there is one.
func (r *retries) end() (key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	if len(r.waiting) == 0 {
		return key{}, false
	}
	next := r.waiting[0]
	r.waiting = r.waiting[1:]
	return next, true
}
