package project

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/kube"
)

// quiet is how long after a write nobody has undone it.
const quiet = 10 * time.Minute

// rewrites spaces the writes of a resource that are for no change of a Secret. An operator that takes a value out of the field, or a webhook that
// alters it, would else have it written again at once, each time.
type rewrites struct {
	last, next time.Time
	backoff    wait.Backoff
}

// add takes note of a write.
func (r *rewrites) add(now time.Time) {
	if now.Sub(r.last) > quiet {
		r.backoff = kube.PatchBackoff()
	}
	r.last, r.next = now, now.Add(r.backoff.Step())
}

// pause returns how long the next one has to wait. Zero or less: not at all.
func (r *rewrites) pause(now time.Time) time.Duration { return r.next.Sub(now) }
