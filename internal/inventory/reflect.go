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

// Run keeps everything equal to the API server until the context is done. A request that fails is made again, with backoff.
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
	// installInterval is how often to look whether the CRD of a kind is installed, while it is not.
	installInterval = 10 * time.Second
	// unservedAfter is how long the API server must not have served a kind before no other waits for its workloads. Until then, the answer may be
	// that of one of several API servers that has not heard of the kind yet.
	unservedAfter = time.Minute
	// watchAgain is how often a watch for which permission was missing is tried again.
	watchAgain = 5 * time.Minute
)

// manifestOf returns what grants the permissions on a kind.
func manifestOf(k workload.Kind) string { return cmp.Or(k.Manifest, "deploy/base/rbac.yaml") }

// reflect keeps a store equal to the API server until the context is done. Nothing waits for the list of a kind that is not installed.
func (i *Inventory) reflect(ctx context.Context, s *kindStore) {
	if !s.kind.Custom {
		i.keep(ctx, s)
		return
	}
	for kube.AwaitInstalled(ctx, i.objects(s, s.namespace).List, installInterval, func() {
		i.options.Log.InfoContext(ctx, "kind of workloads not installed; waiting for it", "resource", s.where(), "retry_in", installInterval)
		s.unserve(i.options.Now())
	}) {
		i.keep(ctx, s)
		i.awaitAgain(ctx, s)
	}
}

// awaitAgain waits until the API server serves a kind again that it has served, or until that is not expected any more.
func (i *Inventory) awaitAgain(ctx context.Context, s *kindStore) {
	if i.isBack(ctx, s, unservedAfter) {
		return
	}
	i.options.Log.WarnContext(ctx, "kind of workloads no longer served; its workloads wait until it is", "resource", s.where(),
		"retry_in", installInterval, "forgotten_in", unservedFor)
	s.unserve(i.options.Now())
	if !i.isBack(ctx, s, unservedFor) {
		s.replaceAt(s.place(), nil, s.seen) // Later changes were not decided for workloads that come back nevertheless: seen stays.
	}
}

// isBack waits until the API server serves a kind. It returns false if that takes longer than a time, and true if the context ended first.
func (i *Inventory) isBack(ctx context.Context, s *kindStore, within time.Duration) bool {
	patience, end := context.WithTimeout(ctx, within)
	defer end()
	return kube.AwaitInstalled(patience, i.objects(s, s.namespace).List, installInterval, func() {}) || ctx.Err() != nil
}

// keep keeps a store equal to the API server, by lists while it may not watch, until the context is done or the kind is not served any more.
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

// listsOnly is a client that cannot stream lists.
type listsOnly struct{}

// IsWatchListSemanticsUnSupported is called by reflectors.
func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

// client returns the client of a kind. Without permission to watch, each streamed list would be an error, so Reloader's role gets none.
func (i *Inventory) client(k workload.Kind) any {
	switch {
	case i.options.Reloader:
		return listsOnly{}
	case k.Custom:
		return i.options.Clients.Dynamic
	}
	return i.options.Clients.Typed
}

// check handles the error of a request, which may be nil. It returns the error if no watch is possible: the kind is not served, or with --reloader
// it may not be watched, because Reloader's own role has no permission for that.
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

// Look is called when a source has changed: the workloads of its namespace that may not be watched are listed soon. A secret in a store has no
// namespace, and no list of everything is worth it: listed are the namespaces with workloads that are known to read it. It does not block.
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
