package workload

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Clients contains the clients of the API server that the kinds use.
type Clients struct {
	Typed kubernetes.Interface
	// Dynamic is the client for custom resources.
	Dynamic dynamic.Interface
	// Unrecorded starts and recreates Jobs even without permission to patch CronJobs and Jobs, which Reloader's own Role lacks.
	Unrecorded bool
}

// Objects reads and patches the workloads of one kind in one namespace.
type Objects interface {
	Get(ctx context.Context, name string) (runtime.Object, error)
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, p Patch) (runtime.Object, error)
}

// reader returns Kind.read for objects of one type.
func reader[Object runtime.Object](read func(Object) parts) func(runtime.Object) (parts, bool) {
	return func(obj runtime.Object) (parts, bool) {
		object, ok := obj.(Object)
		if !ok {
			return parts{}, false
		}
		return read(object), true
	}
}

// typedClient is the common part of the clients of client-go.
type typedClient[Object, List runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (Object, error)
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (Object, error)
}

// apiObject is a pointer to an object of the API.
type apiObject[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// typedObjects are Objects that use a client of client-go.
type typedObjects[Object apiObject[T], List runtime.Object, T any] struct {
	client typedClient[Object, List]
	// unrecorded is Clients.Unrecorded, for kinds that start Jobs.
	unrecorded bool
}

func typed[Object apiObject[T], List runtime.Object, T any](client typedClient[Object, List]) typedObjects[Object, List, T] {
	return typedObjects[Object, List, T]{client: client}
}

func (o typedObjects[Object, List, T]) Get(ctx context.Context, name string) (runtime.Object, error) {
	return o.client.Get(ctx, name, metav1.GetOptions{})
}

func (o typedObjects[Object, List, T]) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return o.client.List(ctx, options)
}

func (o typedObjects[Object, List, T]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.client.Watch(ctx, options)
}

func (o typedObjects[Object, List, T]) Patch(ctx context.Context, name string, p Patch) (runtime.Object, error) {
	return o.send(ctx, name, p)
}

// customClient gives the client of a custom resource the methods of typedClient. Its own Get also takes subresources.
type customClient struct{ dynamic.ResourceInterface }

func (c customClient) Get(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Get(ctx, name, options)
}

// custom returns Objects that use the client of a custom resource.
func custom(client dynamic.ResourceInterface) Objects {
	return typed[*unstructured.Unstructured, *unstructured.UnstructuredList](customClient{client})
}
