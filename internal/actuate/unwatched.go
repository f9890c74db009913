package actuate

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/workload"
)

// watchAgain is how often a watch is tried that was without permission.
const watchAgain = 5 * time.Minute

// listThenWatch is a ListWatch that never watches for its first list: without permission to watch, each such attempt would be an error.
type listThenWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is asked by the reflector.
func (listThenWatch) IsWatchListSemanticsUnSupported() bool { return true }

// unwatched returns what a watch without permission returns with --reloader, because Reloader's own role has no such permission: a watch that
// ends at once, and the reflector with it. For other errors it returns nil.
func (r *reflectors) unwatched(ctx context.Context, where string, err error) watch.Interface {
	if !r.reloader || !apierrors.IsForbidden(err) {
		return nil
	}
	r.mu.Lock()
	told := r.unwatchable[where]
	r.unwatchable[where] = true
	r.mu.Unlock()
	if !told {
		r.log.WarnContext(ctx, "no permission to watch; listing instead", "resource", where, "interval", quietInterval,
			"interval_after_a_change", busyInterval, "err", err)
	}
	ended := watch.NewFakeWithChanSize(1, false)
	ended.Error(&metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "not watched",
	})
	return ended
}

// poll keeps a store equal to the API server without a watch, until it is time to try one again.
func (r *reflectors) poll(ctx context.Context, k workload.Kind, store *kindStore, check func(context.Context, error)) {
	polling, end := context.WithTimeout(ctx, watchAgain)
	defer end()
	p := newPoller(store, func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		options.FieldSelector = r.outside
		list, err := k.Objects(r.clients, namespace).List(ctx, options)
		check(ctx, err)
		return list, err
	}, r.log)
	r.mu.Lock()
	r.pollers[p] = struct{}{}
	r.mu.Unlock()
	p.run(polling)
	r.mu.Lock()
	delete(r.pollers, p)
	r.mu.Unlock()
}

// look is called when a source in a namespace has changed: the workloads that are not watched may not be known as they are.
func (r *reflectors) look(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.pollers {
		p.look(namespace)
	}
}
