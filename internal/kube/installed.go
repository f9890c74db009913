package kube

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lister lists a custom resource: a dynamic.ResourceInterface.
type lister interface {
	List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// AwaitInstalled blocks until the API server serves the resource, checking at each interval. It calls absent once, if the resource is
// not served at first. It reports whether the resource is served; false means that ctx ended first.
//
// Only "not found" means not installed. After any other error it returns true: the informer that runs next gets the same error and reports it.
func AwaitInstalled(ctx context.Context, resource lister, interval time.Duration, absent func()) bool {
	told := false
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		_, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
		if !apierrors.IsNotFound(err) {
			return true, nil
		}
		if !told {
			told = true
			absent()
		}
		return false, nil
	})
	return err == nil && ctx.Err() == nil
}
