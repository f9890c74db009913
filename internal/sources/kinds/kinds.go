// Package kinds defines the kinds of sources: how each is listed, which part of an object is kept, and which event reports its change. It makes no
// requests, and its only state is the mounted content of pods and the secrets in stores that may be restored.
//
// Each kind is a value in the table sourceKinds. Objects are reduced to their names and keyed fingerprints before anything keeps them. The content of
// an ExternalSecret or a Certificate is its status. No workload depends on it: it is the cause of changes in the written Secret, and named in their
// events. The secrets in stores are not objects; openbao observes them, and store.go compares the observations.
package kinds

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	// Assess compares an object with the last event of its source, which is nil if there is none, and returns the next event, or false if there is
	// nothing to publish. It does not set the cluster and the time. The event's Trace is that of its cause, if known.
	Assess(v View, before *LastEvent, o State) (events.Change, bool)
}

// sourceKinds is the table of the kinds of sources.
var sourceKinds = []Kind{configMapKind{}, secretKind{}, externalSecretKind{}, certificateKind{}, secretProviderClassKind{}}

// Select returns the table entries of the kinds. It returns an error for a kind that is unknown or listed twice.
func Select(names []string) ([]Kind, error) {
	var selected []Kind
	for n, name := range names {
		i := slices.Index(Names(), name)
		if i < 0 {
			return nil, fmt.Errorf("--sources: %q, want any of %s", name, strings.Join(Names(), ", "))
		}
		if slices.Contains(names[:n], name) {
			return nil, fmt.Errorf("--sources: %q, want each kind once", strings.Join(names, ","))
		}
		selected = append(selected, sourceKinds[i])
	}
	return selected, nil
}

// Names lists the kinds of sources that can be watched.
func Names() []string {
	names := make([]string, 0, len(sourceKinds))
	for _, kind := range sourceKinds {
		names = append(names, string(kind.Listing().Kind))
	}
	return names
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
	Fields   string // a field selector for the API server; empty matches all
	// Part is the kind of the objects with the content of a source, or nil if the source has it. Label selectors do not apply to parts.
	Part Listed
}

// Name returns the plural in the API, with the group if there is one, for messages about permissions.
func (l Listing) Name() string { return l.Resource.GroupResource().String() }

// IsCustom reports whether an API server may not have the kind.
func (l Listing) IsCustom() bool { return l.Resource.Group != "" }

// State is the watcher's knowledge of an object.
type State struct {
	Now   *Object // the cached object, or nil if it is missing
	First *Object // the object when it was created, or nil if unknown
	// Created says that the object was created while the watcher ran, or after the last one stopped. Recent says that an object that was never
	// watched was created shortly before this watcher started.
	Created, Recent bool
	// Changes is how often its content was seen to change since its last event. Only the last content gets an event.
	Changes int
}

// View contains the means of a kind to assess an object.
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

// Reduce reduces an object of a kind, and returns false for any other. keys are the annotations that ignore a source or match it.
func Reduce(kind Listed, ring *Keyring, keys reloader.Annotations, object any) (*Object, bool) {
	reduced, ok := kind.Reduce(ring, object)
	if !ok {
		return nil, false
	}
	if source, ok := object.(metav1.Object); ok && slices.Contains(events.SourceKinds(), kind.Listing().Kind) {
		reduced.heed(source.GetAnnotations(), keys)
	}
	return reduced, true
}
