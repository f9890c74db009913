package inventory

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// installInterval is how often to look whether the CRD of a kind is installed, while it is not.
const installInterval = 10 * time.Second

// unservedAfter is how long the API server must not have served a kind before no other waits for its workloads. Until then an answer that it knows
// no such kind may be that of one of several API servers that has not heard of it yet.
const unservedAfter = time.Minute

// manifestOf is what grants the permissions on a kind.
func manifestOf(k workload.Kind) string {
	switch {
	case k.Manifest != "":
		return k.Manifest
	case k.Component != "":
		return "deploy/components/" + k.Component
	}
	return "deploy/base/rbac.yaml"
}

// awaitInstalled blocks until the API server serves a kind. Nothing waits for the list of one that it does not serve. It returns false if
// the context ended first.
func (r *reflectors) awaitInstalled(ctx context.Context, k workload.Kind, namespace string) bool {
	where := kindScope(k, namespace)
	return kube.AwaitInstalled(ctx, k.Objects(r.clients, namespace).List, installInterval, func() {
		r.log.InfoContext(ctx, "kind of workloads not installed; waiting for it", "resource", where, "retry_in", installInterval)
		r.index.Unserve(Place{k.Name, namespace}, "", r.now())
		r.lists.Listed(where)
	})
}

// awaitAgain waits until the API server serves a kind again that it has served, or until that is not expected any more.
func (r *reflectors) awaitAgain(ctx context.Context, k workload.Kind, store *kindStore) {
	if r.isBack(ctx, k, store.namespace, unservedAfter) {
		return
	}
	r.log.WarnContext(ctx, "kind of workloads not served any more; its workloads wait for it", "resource", kindScope(k, store.namespace),
		"retry_in", installInterval, "forgotten_in", unservedFor)
	store.unserve(r.now())
	if !r.isBack(ctx, k, store.namespace, unservedFor) {
		store.forget()
	}
}

// isBack waits until the API server serves a kind. It returns false if that takes longer than a time, and true if the context ended first.
func (r *reflectors) isBack(ctx context.Context, k workload.Kind, namespace string, within time.Duration) bool {
	patience, end := context.WithTimeout(ctx, within)
	defer end()
	return kube.AwaitInstalled(patience, k.Objects(r.clients, namespace).List, installInterval, func() {}) || ctx.Err() != nil
}
