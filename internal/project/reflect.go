package project

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/kube"
)

// installInterval is the interval between checks whether a kind is installed.
const installInterval = 10 * time.Second

// reflectors keeps the index in sync with the API server, for each kind in each namespace with Secrets for it.
type reflectors struct {
	client dynamic.Interface
	index  *index
	log    *slog.Logger
	// lists is done when each kind has been listed or found not to be installed.
	lists *kube.FirstLists
	// answered is done when each kind has been listed or could not be listed.
	answered *kube.FirstLists
}

func newReflectors(client dynamic.Interface, index *index, kinds []*kind, log *slog.Logger) *reflectors {
	r := &reflectors{client: client, index: index, log: log, lists: kube.NewFirstLists(), answered: kube.NewFirstLists()}
	for _, k := range kinds {
		for _, namespace := range k.namespaces() {
			r.lists.Expect(place(k, namespace))
			r.answered.Expect(place(k, namespace))
		}
	}
	return r
}

func place(k *kind, namespace string) string {
	return kube.Scope(k.resource.GroupResource().String(), namespace)
}

// reflect reflects a kind in a namespace until the context is done.
func (r *reflectors) reflect(ctx context.Context, k *kind, namespace string) {
	client, where := r.client.Resource(k.resource).Namespace(namespace), place(k, namespace)
	s := &sink{index: r.index, kind: k, namespace: namespace, listed: func() { r.listed(where) }}
	list := func(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		list, err := client.List(ctx, options)
		r.check(ctx, where, err)
		return list, err
	}
	reflector := kube.Reflector[*unstructured.UnstructuredList]{
		Resource: client, Client: r.client, Where: where, Example: &unstructured.Unstructured{}, Store: kube.StoreOf[*target](ctx, s),
	}
	for kube.AwaitInstalled(ctx, list, installInterval, func() {
		r.log.InfoContext(ctx, "resource kind not installed; waiting for it", "resource", where, "retry_in", installInterval)
		r.listed(where)
	}) {
		_ = reflector.Run(logr.NewContext(ctx, reducedLog(r.log)), func(_ context.Context, _ string, err error) error {
			r.check(ctx, where, err)
			if apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
		if ctx.Err() == nil {
			s.Replace(ctx, nil, "")
		}
	}
}

// listed records that a kind was listed.
func (r *reflectors) listed(where string) {
	r.lists.Listed(where)
	r.answered.Listed(where)
}

// check records and logs that a kind cannot be listed or watched, and whether a permission is missing.
func (r *reflectors) check(ctx context.Context, where string, err error) {
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) {
		return
	}
	known := reduce("listing and watching", err, nil)
	if missing := kube.MissingPermission(where, "deploy/projections/example", known); missing != nil {
		r.lists.Deny(where, missing)
		r.log.ErrorContext(ctx, "permission missing", "resource", where, "err", missing)
	} else {
		r.lists.Deny(where, fmt.Errorf("%s cannot be listed: %w", where, known))
		r.log.WarnContext(ctx, "resources cannot be listed", "resource", where, "err", known)
	}
	r.answered.Listed(where)
}
