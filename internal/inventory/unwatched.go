package inventory

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// watchAgain is how often a watch for which permission was missing is tried again.
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

// poller returns what keeps a store equal to the API server while it may not be watched. It calls removed when the API server no longer serves
// the kind.
func (r *reflectors) poller(k workload.Kind, store *kindStore, removed func()) *poller {
	read := r.lister(k)
	p := newPoller(store, func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error) {
		list, err := read(ctx, namespace, options)
		if apierrors.IsNotFound(err) {
			removed()
		}
		if missing := kube.MissingPermission(kindScope(k, namespace), manifestOf(k), err); missing != nil {
			return nil, missing
		}
		return list, err
	}, r.log, r.now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pollers[p] = struct{}{}
	return p
}

// dismiss drops a poller that runs no more, nil if there was none.
func (r *reflectors) dismiss(p *poller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pollers, p)
}

// look is called when a source has changed: the workloads of its namespace that are not watched may not be known as they are. A secret in a store
// has no namespace, and no list of everything is worth it: it is about those with workloads that are known to read it. Who comes to read it is
// known when everything is listed.
func (r *reflectors) look(source events.Source) {
	if !r.reloader {
		return
	}
	namespaces := map[string]struct{}{source.Namespace: {}}
	if source.Namespace == metav1.NamespaceAll {
		namespaces = make(map[string]struct{})
		for _, w := range r.index.Dependents(source) {
			namespaces[w.ID.Namespace] = struct{}{}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.pollers {
		for namespace := range namespaces {
			p.look(namespace)
		}
	}
}
