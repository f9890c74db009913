package project

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/kube"
)

// quiet is how long there must be no further write until the backoff starts over.
const quiet = 10 * time.Minute

// rewrites spaces the writes of a resource that no change of a Secret has caused. Otherwise, if an operator removes a value from the field, or a
// webhook alters it, the value would be written again immediately each time.
type rewrites struct {
	last, next time.Time
	backoff    wait.Backoff
}

// add records a write.
func (r *rewrites) add(now time.Time) {
	if now.Sub(r.last) > quiet {
		r.backoff = kube.PatchBackoff()
	}
	r.last, r.next = now, now.Add(r.backoff.Step())
}

// pause returns how long the next write must wait. If the result is not positive, it need not wait.
func (r *rewrites) pause(now time.Time) time.Duration { return r.next.Sub(now) }
