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

// Run keeps everything in line with the API server until the context is done. It retries failed requests with backoff.
func (i *Inventory) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, namespace := range i.scopes {
		for _, kind := range i.options.Kinds {
			running.Go(func() { i.reflect(ctx, &kindStore{Index: i.Index, kind: kind, namespace: namespace, lists: i.Lists}) })
		}
		if i.options.ReadNamespaces {
			running.Go(func() { i.Namespaces.run(ctx, namespace) })
		}
	}
	running.Wait()
}

const (
	// installInterval is the interval between checks for the CRD of a kind that is not installed.
	installInterval = 10 * time.Second
	// unservedAfter is how long the API server must have failed to serve a kind before nothing waits for its workloads. Until then, the answer may
	// come from one of several API servers that does not know the kind yet.
	unservedAfter = time.Minute
	// watchAgain is the interval between attempts to watch without permission.
	watchAgain = 5 * time.Minute
)

// manifestOf returns the manifest that grants the permissions on a kind.
func manifestOf(k workload.Kind) string { return cmp.Or(k.Manifest, "deploy/base/rbac.yaml") }

// reflect keeps a store in line with the API server until the context is done. Nothing waits for the list of a kind that is not installed.
func (i *Inventory) reflect(ctx context.Context, s *kindStore) {
	if !s.kind.Custom {
		i.keep(ctx, s)
		return
	}
	for kube.AwaitInstalled(ctx, i.objects(s, s.namespace).List, installInterval, func() {
		i.options.Log.InfoContext(ctx, "workload kind not installed; waiting for it", "resource", s.where(), "retry_in", installInterval)
		s.unserve(i.options.Now())
	}) {
		i.keep(ctx, s)
		i.awaitAgain(ctx, s)
	}
}

// awaitAgain waits until the API server serves a kind again, or until the kind counts as deleted.
func (i *Inventory) awaitAgain(ctx context.Context, s *kindStore) {
	if i.isBack(ctx, s, unservedAfter) {
		return
	}
	i.options.Log.WarnContext(ctx, "workload kind no longer served; its workloads wait until it is served again", "resource", s.where(),
		"retry_in", installInterval, "forgotten_in", unservedFor)
	s.unserve(i.options.Now())
	if !i.isBack(ctx, s, unservedFor) {
		s.replaceAt(s.place(), nil, s.seen) // Keep seen: if workloads come back, later changes are undecided.
	}
}

// isBack waits until the API server serves a kind. It returns false if that does not happen within a time, and true if the context ended first.
func (i *Inventory) isBack(ctx context.Context, s *kindStore, within time.Duration) bool {
	patience, end := context.WithTimeout(ctx, within)
	defer end()
	return kube.AwaitInstalled(patience, i.objects(s, s.namespace).List, installInterval, func() {}) || ctx.Err() != nil
}

// keep keeps a store in line with the API server, by lists if it may not watch, until the context is done or the kind is not served any more.
func (i *Inventory) keep(ctx context.Context, s *kindStore) {
	reflector := kube.Reflector[runtime.Object]{
		Resource: i.objects(s, s.namespace), Client: i.client(s.kind), Where: s.where(), Example: s.kind.Example, Fields: i.outside,
		Store: kube.StoreOf[*workload.Workload](ctx, s),
	}
	var p *poller
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.pollers, p)
	}()
	for {
		err := reflector.Run(ctx, func(ctx context.Context, verb string, err error) error { return i.check(ctx, s, verb, err) })
		if err == nil || s.isRemoved(err) {
			return
		}
		if p == nil {
			p = newPoller(s, i, i.options.Log, i.options.Now)
			i.mu.Lock()
			i.pollers[p] = struct{}{}
			i.mu.Unlock()
		}
		polling, end := context.WithTimeout(ctx, watchAgain)
		err = p.run(polling)
		end()
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

func (i *Inventory) objects(s *kindStore, namespace string) workload.Objects {
	return s.kind.Objects(i.options.Clients, namespace)
}

// listsOnly marks a client that cannot stream lists.
type listsOnly struct{}

// IsWatchListSemanticsUnSupported is called by reflectors.
func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

// client returns the client of a kind. With Reloader's role, which may not watch, it is one that streams no lists, because they would fail.
func (i *Inventory) client(k workload.Kind) any {
	switch {
	case i.options.Reloader:
		return listsOnly{}
	case k.Custom:
		return i.options.Clients.Dynamic
	}
	return i.options.Clients.Typed
}

// check handles the error of a request, which may be nil. It returns the error if a watch is impossible because the kind is not served or, with
// --reloader, because the permission is missing, as in Reloader's own role.
func (i *Inventory) check(ctx context.Context, s *kindStore, verb string, err error) error {
	if i.options.Reloader && verb == "watch" && apierrors.IsForbidden(err) {
		if !s.isUnwatchable {
			i.options.Log.WarnContext(ctx, "no permission to watch; listing instead", "resource", s.where(), "interval", quietInterval,
				"interval_after_a_change", busyInterval, "err", err)
		}
		s.isUnwatchable = true
		return err
	}
	i.Lists.Check(ctx, i.options.Log, s.where(), manifestOf(s.kind), err)
	if s.isRemoved(err) {
		return err
	}
	return nil
}

// list lists the workloads of a kind in a namespace, or in all of them, except those in ignored namespaces.
func (i *Inventory) list(ctx context.Context, s *kindStore, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = i.outside
	list, err := i.objects(s, namespace).List(ctx, options)
	if missing := kube.MissingPermission(kindScope(s.kind, namespace), manifestOf(s.kind), err); missing != nil {
		return nil, missing
	}
	return list, err
}

// Look schedules lists of workloads that may not be watched, after a change of a source in their namespace. For a secret in a store, which has no
// namespace, it lists the namespaces with workloads that are known to read it, because a list of everything would cost too much. It does not block.
func (i *Inventory) Look(source events.Source) {
	if !i.options.Reloader {
		return
	}
	namespaces := map[string]struct{}{source.Namespace: {}}
	if source.Namespace == metav1.NamespaceAll {
		namespaces = make(map[string]struct{})
		for _, w := range i.Index.Dependents(source) {
			namespaces[w.ID.Namespace] = struct{}{}
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for p := range i.pollers {
		for namespace := range namespaces {
			p.look(namespace)
		}
	}
}
