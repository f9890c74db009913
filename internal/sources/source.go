package sources

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// source is a kind of object in the Kubernetes API whose content is watched. A new kind is one more file with one more of
// these, and a line in known.
type source struct {
	kind events.Kind
	// resource is the plural in the API, with the group where there is one, for messages about rights.
	resource string
	// options narrows what the API server sends. Nil narrows nothing.
	options func(*metav1.ListOptions)
	// informer is that of a kind that every API server has. Nil where the kind is custom.
	informer func(informers.SharedInformerFactory) cache.SharedIndexInformer
	// custom is a resource that an API server may not have: see installed.
	custom schema.GroupVersionResource
	// indexers are what objects of a custom kind are found by besides their namespace.
	indexers cache.Indexers
	// reduce makes what is kept of an object of this kind; false of an object of another.
	reduce func(ring *Keyring, obj any) (*object, bool)
	// assess says what the event is where the object is now, nil being gone; false where there is nothing to say.
	assess func(w *Watcher, before *last, now *object, noticed queueEntry) (events.Change, bool)
}

var known = []source{configMapSource, secretSource, externalSecretSource, certificateSource}

// transform reduces each object to what is kept before anything holds on to it. With streaming lists that is as each object
// arrives, so that not even the first list holds all values at once.
func (s source) transform(ring *Keyring) cache.TransformFunc {
	return func(obj any) (any, error) {
		reduced, ok := s.reduce(ring, obj)
		if !ok {
			return obj, nil // reduced before, or a tombstone of the informer
		}
		return reduced, nil
	}
}

// isCustom tells whether an API server may not have the kind.
func (s source) isCustom() bool { return s.informer == nil }

// selectSources gives the sources of the kinds. It reports a kind that there is not, and one that comes twice.
func selectSources(kinds []string) ([]source, error) {
	var selected []source
	for n, kind := range kinds {
		i := slices.IndexFunc(known, func(s source) bool { return string(s.kind) == kind })
		if i < 0 {
			return nil, fmt.Errorf("--sources: %q is not one of %s", kind, strings.Join(Kinds(), ", "))
		}
		if slices.Contains(kinds[:n], kind) {
			return nil, fmt.Errorf("--sources: %q is given twice", kind)
		}
		selected = append(selected, known[i])
	}
	return selected, nil
}

// Kinds lists the kinds of sources that can be watched.
func Kinds() []string {
	names := make([]string, 0, len(known))
	for _, s := range known {
		names = append(names, string(s.kind))
	}
	return names
}

// defaultKinds are those that every cluster has.
func defaultKinds() []string {
	var names []string
	for _, s := range known {
		if !s.isCustom() {
			names = append(names, string(s.kind))
		}
	}
	return names
}
