package inventory

import (
	"cmp"
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// installInterval is how often to look whether the CRD of a kind is installed, while it is not.
	installInterval = 10 * time.Second
	// unservedAfter is how long the API server must not have served a kind before no other waits for its workloads. Until then, the answer may be
	// that of one of several API servers that has not heard of the kind yet.
	unservedAfter = time.Minute
	// watchAgain is how often a watch for which permission was missing is tried again.
	watchAgain = 5 * time.Minute
)

// reflectors keep the index equal to the API server.
type reflectors struct {
	Options
	scopes []string
	// outside is the field selector that leaves out what is in ignored namespaces.
	outside string
	index   *Index
	lists   *kube.FirstLists

	mu sync.Mutex
	// pollers are those of the workloads that may not be watched, or could not when that was last tried.
	pollers map[*poller]struct{}
	// unwatchable has the resources for which it was logged that they may not be watched.
	unwatchable map[string]bool
}

func newReflectors(options Options, index *Index, lists *kube.FirstLists) *reflectors {
	r := &reflectors{
		Options: options, scopes: kube.Listed(options.Namespaces), outside: kube.Outside(options.IgnoreNamespaces), index: index, lists: lists,
		pollers: make(map[*poller]struct{}), unwatchable: make(map[string]bool),
	}
	for _, kind := range r.Kinds {
		for _, namespace := range r.scopes {
			lists.Expect(kindScope(kind, namespace))
		}
	}
	return r
}

// kindScope returns the name of a kind in a namespace, or in all of them, for messages and readiness.
func kindScope(k workload.Kind, namespace string) string { return kube.Scope(k.Resource, namespace) }

// manifestOf returns what grants the permissions on a kind.
func manifestOf(k workload.Kind) string { return cmp.Or(k.Manifest, "deploy/base/rbac.yaml") }

// run reflects until the context is done.
func (r *reflectors) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, kind := range r.Kinds {
		for _, namespace := range r.scopes {
			running.Go(func() { r.reflect(ctx, &kindStore{Index: r.index, kind: kind, namespace: namespace, lists: r.lists}) })
		}
	}
	running.Wait()
}

// reflect keeps a store equal to the API server until the context is done. Nothing waits for the list of a kind that is not installed.
func (r *reflectors) reflect(ctx context.Context, s *kindStore) {
	if !s.kind.Custom {
		r.keep(ctx, s)
		return
	}
	for kube.AwaitInstalled(ctx, r.objects(s, s.namespace).List, installInterval, func() {
		r.Log.InfoContext(ctx, "kind of workloads not installed; waiting for it", "resource", s.where(), "retry_in", installInterval)
		s.unserve(r.Now())
	}) {
		r.keep(ctx, s)
		r.awaitAgain(ctx, s)
	}
}

// awaitAgain waits until the API server serves a kind again that it has served, or until that is not expected any more.
func (r *reflectors) awaitAgain(ctx context.Context, s *kindStore) {
	if r.isBack(ctx, s, unservedAfter) {
		return
	}
	r.Log.WarnContext(ctx, "kind of workloads not served any more; its workloads wait for it", "resource", s.where(),
		"retry_in", installInterval, "forgotten_in", unservedFor)
	s.unserve(r.Now())
	if !r.isBack(ctx, s, unservedFor) {
		s.forget()
	}
}

// isBack waits until the API server serves a kind. It returns false if that takes longer than a time, and true if the context ended first.
func (r *reflectors) isBack(ctx context.Context, s *kindStore, within time.Duration) bool {
	patience, end := context.WithTimeout(ctx, within)
	defer end()
	return kube.AwaitInstalled(patience, r.objects(s, s.namespace).List, installInterval, func() {}) || ctx.Err() != nil
}

// keep keeps a store equal to the API server, by lists while it may not watch, until the context is done or the kind is not served any more.
func (r *reflectors) keep(ctx context.Context, s *kindStore) {
	reflector := kube.Reflector[runtime.Object]{
		Resource: r.objects(s, s.namespace), Client: r.client(s.kind), Where: s.where(), Example: s.kind.Example, Fields: r.outside,
		Store: kube.StoreOf[*workload.Workload](ctx, s),
	}
	var p *poller
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pollers, p)
	}()
	for {
		err := reflector.Run(ctx, func(ctx context.Context, verb string, err error) error { return r.check(ctx, s, verb, err) })
		if err == nil || s.isRemoved(err) {
			return
		}
		if p == nil {
			p = newPoller(s, r, r.Log, r.Now)
			r.mu.Lock()
			r.pollers[p] = struct{}{}
			r.mu.Unlock()
		}
		polling, end := context.WithTimeout(ctx, watchAgain)
		err = p.run(polling)
		end()
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

func (r *reflectors) objects(s *kindStore, namespace string) workload.Objects {
	return s.kind.Objects(r.Clients, namespace)
}

// listsOnly is a client that cannot stream lists.
type listsOnly struct{}

// IsWatchListSemanticsUnSupported is called by reflectors.
func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

// client returns the client of a kind. Without permission to watch, each streamed list would be an error, so Reloader's role gets none.
func (r *reflectors) client(k workload.Kind) any {
	switch {
	case r.Reloader:
		return listsOnly{}
	case k.Custom:
		return r.Clients.Dynamic
	}
	return r.Clients.Typed
}

// check handles the error of a request, which may be nil. It returns the error if no watch is possible: the kind is not served, or with --reloader
// it may not be watched, because Reloader's own role has no permission for that.
func (r *reflectors) check(ctx context.Context, s *kindStore, verb string, err error) error {
	if r.Reloader && verb == "watch" && apierrors.IsForbidden(err) {
		r.mu.Lock()
		logged := r.unwatchable[s.where()]
		r.unwatchable[s.where()] = true
		r.mu.Unlock()
		if !logged {
			r.Log.WarnContext(ctx, "no permission to watch; listing instead", "resource", s.where(), "interval", quietInterval,
				"interval_after_a_change", busyInterval, "err", err)
		}
		return err
	}
	r.lists.Check(ctx, r.Log, s.where(), manifestOf(s.kind), err)
	if s.isRemoved(err) {
		return err
	}
	return nil
}

// list lists the workloads of a kind in a namespace, or in all of them, except those in ignored namespaces.
func (r *reflectors) list(ctx context.Context, s *kindStore, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = r.outside
	list, err := r.objects(s, namespace).List(ctx, options)
	if missing := kube.MissingPermission(kindScope(s.kind, namespace), manifestOf(s.kind), err); missing != nil {
		return nil, missing
	}
	return list, err
}

// look is called when a source has changed: the workloads of its namespace that are not watched may not be known as they are. A secret in a store
// has no namespace, and no list of everything is worth it: look lists the namespaces with workloads that are known to read it.
func (r *reflectors) look(source events.Source) {
	if !r.Reloader {
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
