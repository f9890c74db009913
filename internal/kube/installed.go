package kube

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// AwaitInstalled blocks until the API server serves the resource that list lists, checking at each interval. It calls absent once, if the
// resource is not served at first. It reports whether the resource is served; false means that ctx ended first.
//
// Only "not found" means not installed. After any other error it returns true: the informer that runs next gets the same error and reports it.
func AwaitInstalled[List any](
	ctx context.Context, list func(context.Context, metav1.ListOptions) (List, error), interval time.Duration, absent func(),
) bool {
	absentOnce := sync.OnceFunc(absent)
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		_, err := list(ctx, metav1.ListOptions{Limit: 1})
		if !apierrors.IsNotFound(err) {
			return true, nil
		}
		absentOnce()
		return false, nil
	})
	return err == nil && ctx.Err() == nil
}
