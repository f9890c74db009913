package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errNotInstalled = apierrors.NewNotFound(schema.GroupResource{Resource: "externalsecrets"}, "")

// answers is a resource whose lists fail with the errors in turn. The last one is repeated.
type answers struct {
	errs  []error
	asked int
	limit int64
}

func (a *answers) list(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	a.limit = opts.Limit
	err := a.errs[min(a.asked, len(a.errs)-1)]
	a.asked++
	return nil, errors.Join(err, ctx.Err())
}

func TestAwaitInstalled(t *testing.T) {
	for _, tt := range []struct {
		name   string
		errs   []error
		took   time.Duration
		absent int
	}{
		{"a resource that is served is not waited for", []error{nil}, 0, 0},
		{"a resource that comes later is waited for, and reported absent once", []error{errNotInstalled, errNotInstalled, nil}, 2 * time.Minute, 1},
		{"another error is left to the informer", []error{apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, 0, 0},
		{"another error ends the wait", []error{errNotInstalled, errors.New("connection refused")}, time.Minute, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, absent, resource := time.Now(), 0, &answers{errs: tt.errs}
				if !AwaitInstalled(t.Context(), resource.list, time.Minute, func() { absent++ }) {
					t.Error("got false")
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("took %s, want %s", took, tt.took)
				}
				if absent != tt.absent {
					t.Errorf("absent was called %d times, want %d", absent, tt.absent)
				}
				if resource.limit != 1 {
					t.Errorf("listed %d objects to learn that the resource is served, want 1", resource.limit)
				}
			})
		})
	}
}
