package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Sink receives the objects of a Reflector, reduced to T. It can distinguish a write, from a watch, from the result of a list.
type Sink[T any] interface {
	// Reduce returns the part of an object that is kept. ok is false for an object of another type.
	Reduce(object runtime.Object) (reduced T, ok bool)
	// Put is called with an object that was created or written, and Drop with one that was deleted, both from a watch.
	Put(ctx context.Context, object T)
	Drop(ctx context.Context, object T)
	// Replace is called with the result of a list.
	Replace(ctx context.Context, objects []T, version string)
}

// sinkStore makes a Sink the store of a Reflector.
type sinkStore[T any] struct {
	Sink[T]
	ctx func() context.Context // returns the context of the Reflector, which passes none
}

// StoreOf returns a store that passes everything on to a Sink, with ctx. While a list is streamed, it keeps only the reduced objects.
func StoreOf[T any](ctx context.Context, sink Sink[T]) cache.TransformingStore {
	return &sinkStore[T]{Sink: sink, ctx: func() context.Context { return ctx }}
}

func (s *sinkStore[T]) reduced(obj any) (T, bool) {
	if object, ok := obj.(runtime.Object); ok {
		return s.Reduce(object)
	}
	reduced, ok := obj.(T)
	return reduced, ok
}

func (s *sinkStore[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if reduced, ok := s.reduced(obj); ok {
			return reduced, nil
		}
		return obj, nil
	}
}

func (s *sinkStore[T]) Add(obj any) error { return s.Update(obj) }

func (s *sinkStore[T]) Update(obj any) error {
	if reduced, ok := s.reduced(obj); ok {
		s.Put(s.ctx(), reduced)
	}
	return nil
}

func (s *sinkStore[T]) Delete(obj any) error {
	if reduced, ok := s.reduced(obj); ok {
		s.Drop(s.ctx(), reduced)
	}
	return nil
}

func (s *sinkStore[T]) Replace(list []any, version string) error {
	objects := make([]T, 0, len(list))
	for _, obj := range list {
		if reduced, ok := s.reduced(obj); ok {
			objects = append(objects, reduced)
		}
	}
	s.Sink.Replace(s.ctx(), objects, version)
	return nil
}

// UpdateResourceVersion tells the Sink how far it is, if the Sink is a cache.ResourceVersionUpdater. The reflector calls it after each event of a
// watch, also after a bookmark.
func (s *sinkStore[T]) UpdateResourceVersion(version string) {
	if sink, ok := s.Sink.(cache.ResourceVersionUpdater); ok {
		sink.UpdateResourceVersion(version)
	}
}

// Resync does nothing, because the store keeps no objects.
func (s *sinkStore[T]) Resync() error { return nil }
