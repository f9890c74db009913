package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Resource lists and watches the objects of a resource, in one namespace or in all of them.
type Resource[List runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Reflector keeps a store in line with a resource of the API server.
type Reflector[List runtime.Object] struct {
	Resource Resource[List]
	// Client is the client of the resource. Lists are streamed unless it has a method IsWatchListSemanticsUnSupported that returns true.
	Client  any
	Where   string         // names the resource in messages, as Scope does
	Example runtime.Object // has the type of the objects
	Fields  string         // the field selector of the objects; empty selects all
	Store   cache.ReflectorStore
}

// Run reflects until ctx is done, and then returns nil. It calls check with the verb and the error of each request, which may be nil. If check
// returns an error, Run returns it. Other errors are logged with the logger of ctx, if it has one.
func (r Reflector[List]) Run(ctx context.Context, check func(ctx context.Context, verb string, err error) error) error {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = r.Fields
			list, err := r.Resource.List(ctx, options)
			if last := check(ctx, "list", err); last != nil {
				end(last)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = r.Fields
			events, err := r.Resource.Watch(ctx, options)
			if last := check(ctx, "watch", err); last != nil {
				end(last)
				return endedWatch(), nil // The reflector would log an error.
			}
			return events, err
		},
	}
	options := cache.ReflectorOptions{Name: r.Where}
	if log, err := logr.FromContext(ctx); err == nil {
		options.Logger = &log
	}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, r.Client), r.Example, r.Store, options).RunWithContext(running)
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(running)
}

// endedWatch returns a watch that ends at once, in a way that reflectors do not log.
func endedWatch() watch.Interface {
	ended := watch.NewFakeWithChanSize(1, false)
	ended.Error(&metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "not watched"})
	return ended
}

// AwaitInstalled blocks until the API server serves the resource of list, with checks at each interval. It calls absent once if the resource is not
// served at first. It returns false if ctx ended first.
//
// Only "not found" means not installed. After any other error it returns true: the reflector that runs next gets the same error and reports it.
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

// MissingPermission returns an error that says how to grant permission to list and watch a resource, if err means that it is missing, and nil
// otherwise. Manifest is the file in this repository that grants the permission.
func MissingPermission(resource, manifest string, err error) error {
	if !apierrors.IsForbidden(err) {
		return nil
	}
	return fmt.Errorf("no permission to list and watch %s; grant it as in %s: %w", resource, manifest, err)
}
