package actuate

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// listInterval is how often workloads are listed that may not be watched.
const listInterval = 2 * time.Second

// listOnly is the backoff of a reflector that may have to list again and again.
func listOnly() *wait.Backoff { return &wait.Backoff{Duration: listInterval, Jitter: 0.1} }

// listThenWatch is a ListWatch that never watches for its first list: without permission to watch, each such attempt would be an error.
type listThenWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is asked by the reflector.
func (listThenWatch) IsWatchListSemanticsUnSupported() bool { return true }

// unwatched returns what a watch without permission returns with --reloader, because Reloader's own role has no such permission: a watch that
// ends at once, so that the reflector lists again after listInterval. For other errors it returns nil.
func (r *reflectors) unwatched(ctx context.Context, where string, err error) watch.Interface {
	if !r.reloader || !apierrors.IsForbidden(err) {
		return nil
	}
	r.mu.Lock()
	told := r.unwatchable[where]
	r.unwatchable[where] = true
	r.mu.Unlock()
	if !told {
		r.log.WarnContext(ctx, "no permission to watch; listing instead", "resource", where, "interval", listInterval, "err", err)
	}
	ended := watch.NewFakeWithChanSize(1, false)
	ended.Error(&metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "not watched",
	})
	return ended
}
