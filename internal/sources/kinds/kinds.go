// Package kinds knows the kinds of sources: how each is listed, which part of an object is kept, and which event tells its change. It makes no
// requests, and has no state but what pods had mounted and which secrets of stores may be restored.
//
// Each kind is a value in the table sourceKinds. Objects are reduced to their names and keyed fingerprints before anything holds on to them. The
// content of an ExternalSecret or a Certificate is its status. No workload depends on these: they cause changes of the Secrets that they write, whose
// events name them. The secrets in stores are no objects; openbao observes them, and store.go compares the observations.
package kinds

import (
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
)

// Listed is a kind of Kubernetes object that is listed and watched.
type Listed interface {
	Listing() Listing
	// Reduce returns the part of an object that is kept, and false for an object of another kind.
	Reduce(ring *Keyring, obj any) (*Object, bool)
}

// Kind is a kind whose objects are sources. A new kind is one more file with one of these, and an entry in sourceKinds.
type Kind interface {
	Listed
	// Assess compares an object with the last event of its source, which is nil if there is none, and returns the next event. It returns false if
	// there is nothing to publish. It does not set the cluster and the time. The event's Trace is that of its cause, if that is known.
	Assess(v View, before *LastEvent, o State) (events.Change, bool)
}

const (
	grantBase                  = "deploy/base/rbac.yaml"
	grantCustom                = "deploy/components/secret-stores/watcher.yaml"
	grantSecretProviderClasses = "deploy/components/secret-provider-classes/watcher.yaml"
)

// Listing is how a kind is listed and watched.
type Listing struct {
	Kind     events.Kind
	Resource schema.GroupVersionResource
	Grant    string // the manifest that grants the permission
	Fields   string // a field selector for the API server; if empty, it sends everything
	// Part is the kind of the objects that hold the content of a source, or nil if the source does. Label selectors do not apply to a part.
	Part     Listed
	Indexers cache.Indexers // of objects of a custom kind, by more than their namespace
}

// Name returns the plural in the API, with the group if there is one, for messages about permissions.
func (l Listing) Name() string { return l.Resource.GroupResource().String() }

// IsCustom reports whether an API server may not have the kind.
func (l Listing) IsCustom() bool { return l.Resource.Group != "" }

// State is an object as the watcher knows it.
type State struct {
	Now   *Object // as it is cached, or nil if it is gone
	First *Object // as it was created, or nil if that is unknown
	// Created reports that the object was created while the watcher ran, or after the one before, and Recent that an object that was never watched
	// was created shortly before this watcher began.
	Created, Recent bool
	// Changes is how often its content was seen to come or change since its last event. Of all but the last content there is no event then.
	Changes int
}

// View has what a kind may use to assess an object.
type View struct {
	Cached   Cache
	Contents *PodContents
	Ring     *Keyring
	Now      func() time.Time
	Queue    Rechecker
	Log      *slog.Logger
}

// Rechecker assesses a source again after a delay.
type Rechecker interface {
	AddAfter(source events.Source, delay time.Duration)
}

// Transform reduces each object of a kind before anything holds on to it. With streaming lists this happens as each object arrives, so that not
// even the first list holds all values at once. keys has the names of the annotations by which a source is ignored or found.
func Transform(kind Listed, ring *Keyring, keys reloader.Annotations) cache.TransformFunc {
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
