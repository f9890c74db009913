package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// ListWatch lists and watches the objects of a client that a field selector selects. It calls check with the error of each request, or nil.
func ListWatch(client dynamic.ResourceInterface, fields string, check func(context.Context, error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = fields
			list, err := client.List(ctx, options)
			check(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields
			events, err := client.Watch(ctx, options)
			check(ctx, err)
			return events, err
		},
	}
}
