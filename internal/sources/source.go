package sources

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
)

// sourceKind is a kind of Kubernetes object whose content is watched. A new kind is one more file with one of these, and a line
// in kinds.go.
type sourceKind struct {
	kind events.Kind
	// resource is the plural in the API, with the group if there is one, for messages about permissions.
	resource string
	// options restricts what the API server sends. If nil, it sends everything.
	options func(*metav1.ListOptions)
	// informer makes the informer of a kind that every API server has. It is nil for a custom kind.
	informer func(informers.SharedInformerFactory) cache.SharedIndexInformer
	// custom is the resource of a kind that an API server may not have: see installState.
	custom schema.GroupVersionResource
	// grant is the manifest that grants the permission to list and watch a custom kind.
	grant string
	// part is the kind of the objects that hold the content of a source. It is nil if the source itself holds it. A part has no assess, and label
	// selectors do not apply to it.
	part *sourceKind
	// indexers index objects of a custom kind by more than their namespace.
	indexers cache.Indexers
	// reduce returns the part of an object that is kept, and false for an object of another kind.
	reduce func(ring *keyring, obj any) (*object, bool)
	// assess returns the event for an object, and false if there is none. The object is nil if it is gone.
	assess func(v view, before *lastEvent, now *object, created bool) (events.Change, bool)
}

// transform reduces each object before anything holds on to it. With streaming lists this happens as each object arrives, so that not even the
// first list holds all values at once. keys has the names of the annotations by which a source is ignored or found.
func (s sourceKind) transform(ring *keyring, keys annotations.Reloader) cache.TransformFunc {
	return func(obj any) (any, error) {
		reduced, ok := s.reduce(ring, obj)
		if !ok {
			return obj, nil // Already reduced, or a tombstone of the informer.
		}
		if source, ok := obj.(metav1.Object); ok && slices.Contains(events.SourceKinds(), s.kind) {
			reduced.heed(source.GetAnnotations(), keys)
		}
		return reduced, nil
	}
}

// isCustom reports whether an API server may not have the kind.
func (s sourceKind) isCustom() bool { return s.informer == nil }
