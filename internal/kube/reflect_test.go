package kube

import (
	"context"
	"errors"
	"strings"
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

func TestAwaitInstalledIsFalseWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		if AwaitInstalled(ctx, (&answers{errs: []error{errNotInstalled}}).list, time.Minute, func() {}) {
			t.Error("got true after the wait was cut off")
		}
		if AwaitInstalled(ctx, (&answers{errs: []error{nil}}).list, time.Minute, func() {}) {
			t.Error("got true though the context had ended before")
		}
	})
}

func TestMissingPermission(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
	err := MissingPermission("secrets", "deploy/base/rbac.yaml", refusal)
	if !errors.Is(err, error(refusal)) {
		t.Errorf("got %v, want an error that wraps the refusal", err)
	}
	const want = "no permission to list and watch secrets; grant it as in deploy/base/rbac.yaml: secrets is forbidden"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for _, other := range []error{nil, errors.New("connection refused"), apierrors.NewUnauthorized("who are you")} {
		if err := MissingPermission("secrets", "deploy/base/rbac.yaml", other); err != nil {
			t.Errorf("%v: got %v, want nil", other, err)
		}
	}
}
