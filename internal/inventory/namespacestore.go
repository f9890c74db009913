package inventory

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// namespaceStore takes what a reflector sees of namespaces, and keeps nothing but their annotations while it collects a list.
type namespaceStore struct {
	*Namespaces
	scope string
	// ctx is that of the reflector, which passes none.
	ctx func() context.Context
}

var _ cache.TransformingStore = (*namespaceStore)(nil)

// Transformer makes the reflector keep only annotations while it collects a streamed list.
func (s *namespaceStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		namespace, ok := obj.(*corev1.Namespace)
		if !ok {
			return obj, nil
		}
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace.Name, ResourceVersion: namespace.ResourceVersion, Annotations: namespace.Annotations,
		}}, nil
	}
}

// Add is called with a namespace that was created.
func (s *namespaceStore) Add(obj any) error { return s.Update(obj) }

// Update is called with a namespace that was written.
func (s *namespaceStore) Update(obj any) error {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		s.Set(s.ctx(), namespace.Name, namespace.Annotations)
	}
	return nil
}

// Delete is called with a namespace that was deleted.
func (s *namespaceStore) Delete(obj any) error {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		s.Set(s.ctx(), namespace.Name, nil)
	}
	return nil
}

// Replace is called with the result of a list.
func (s *namespaceStore) Replace(list []any, _ string) error {
	listed := make(map[string]bool, len(list))
	for _, obj := range list {
		if namespace, ok := obj.(*corev1.Namespace); ok {
			listed[namespace.Name] = true
			s.Set(s.ctx(), namespace.Name, namespace.Annotations)
		}
	}
	for _, name := range s.names() {
		if !listed[name] && (s.scope == metav1.NamespaceAll || s.scope == name) {
			s.Set(s.ctx(), name, nil)
		}
	}
	s.answered(s.scope)
	return nil
}

// Resync does nothing: nothing is kept that would have to be repeated.
func (s *namespaceStore) Resync() error { return nil }
