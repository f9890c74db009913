package sources

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/annotations"
	"github.com/keyturn/keyturn/internal/events"
)

// listedKind is a kind of Kubernetes object that is listed and watched.
type listedKind interface {
	Listing() listing
	// Reduce returns the part of an object that is kept, and false for an object of another kind.
	Reduce(ring *keyring, obj any) (*object, bool)
}

// sourceKind is a kind whose objects are sources. A new kind is one more file with one of these, and an entry in sourceKinds.
type sourceKind interface {
	listedKind
	// Assess compares an object with the last event of its source, which is nil if there is none, and returns the next event. It returns false if
	// there is nothing to publish. It does not set the cluster and the time. The event's Trace is that of its cause, if that is known.
	Assess(v view, before *lastEvent, o objectState) (events.Change, bool)
}

// sourceKinds is the table of the kinds of sources.
var sourceKinds = []sourceKind{configMapKind{}, secretKind{}, externalSecretKind{}, certificateKind{}, secretProviderClassKind{}}

// The manifests that grant the permission to list and watch a kind.
const (
	grantBase                  = "deploy/base/rbac.yaml"
	grantCustom                = "deploy/components/secret-stores/watcher.yaml"
	grantSecretProviderClasses = "deploy/components/secret-provider-classes/watcher.yaml"
)

// listing is how a kind is listed and watched.
type listing struct {
	Kind     events.Kind
	Resource schema.GroupVersionResource
	// Grant is the manifest that grants the permission.
	Grant string
	// Fields is a field selector for the API server. If empty, it sends everything.
	Fields string
	// Part is the kind of the objects that hold the content of a source. It is nil if the source itself holds it. Label selectors do not apply to
	// a part.
	Part listedKind
	// Indexers index objects of a custom kind by more than their namespace.
	Indexers cache.Indexers
}

// Name returns the plural in the API, with the group if there is one, for messages about permissions.
func (l listing) Name() string { return l.Resource.GroupResource().String() }

// IsCustom reports whether an API server may not have the kind.
func (l listing) IsCustom() bool { return l.Resource.Group != "" }

// objectState is an object as the watcher knows it.
type objectState struct {
	// Now is the cached object. It is nil if the object is gone.
	Now *object
	// First is the object as it was created; it may have changed since. It is nil if that is unknown.
	First *object
	// Created reports that the object was created while the watcher ran, or after the one before, and Recent that an object that was never watched
	// was created shortly before this watcher began.
	Created, Recent bool
}

// view is what a kind may use to assess an object.
type view struct {
	Cached   objectCache
	Contents *podContents
	Ring     *keyring
	Now      func() time.Time
	Queue    rechecker
	Log      *slog.Logger
}

// rechecker assesses a source again after a delay.
type rechecker interface {
	AddAfter(source events.Source, delay time.Duration)
}

// transformOf reduces each object of a kind before anything holds on to it. With streaming lists this happens as each object arrives, so that not
// even the first list holds all values at once. keys has the names of the annotations by which a source is ignored or found.
func transformOf(kind listedKind, ring *keyring, keys annotations.Reloader) cache.TransformFunc {
	isRead := slices.Contains(events.SourceKinds(), kind.Listing().Kind)
	return func(obj any) (any, error) {
		reduced, ok := kind.Reduce(ring, obj)
		if !ok {
			return obj, nil // Already reduced, or a tombstone of the informer.
		}
		if source, ok := obj.(metav1.Object); ok && isRead {
			reduced.heed(source.GetAnnotations(), keys)
		}
		return reduced, nil
	}
}

// selectSources returns the table entries of the kinds. It returns an error for a kind that is unknown or listed twice.
func selectSources(names []string) ([]sourceKind, error) {
	var selected []sourceKind
	for n, name := range names {
		i := slices.Index(kindNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("--sources: %q, want any of %s", name, strings.Join(kindNames(), ", "))
		}
		if slices.Contains(names[:n], name) {
			return nil, fmt.Errorf("--sources: %q, want each kind once", strings.Join(names, ","))
		}
		selected = append(selected, sourceKinds[i])
	}
	return selected, nil
}

// kindNames lists the kinds of sources that can be watched.
func kindNames() []string {
	names := make([]string, 0, len(sourceKinds))
	for _, kind := range sourceKinds {
		names = append(names, string(kind.Listing().Kind))
	}
	return names
}

// defaultKinds lists the kinds that every cluster has.
func defaultKinds() []string {
	return []string{string(events.KindConfigMap), string(events.KindSecret)}
}
