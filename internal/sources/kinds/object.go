package kinds

import (
	"slices"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/reloader"
)

// annotationIgnore, on a source, means that its changes roll nothing, like Reloader's annotation of the same name.
const annotationIgnore = "keyturn.dev/ignore"

// Object is the part of a source that the informers cache: its name and its fingerprints.
type Object struct {
	Source          events.Source
	UID             types.UID
	ResourceVersion string

	fingerprints []fingerprints // of the data; an object whose content is its status has none
	extras
}

// extras contains the fields of an object beside its version and its fingerprints.
type extras struct {
	// writtenAt and createdAt are in seconds since 1970, like the API server's times. They are negative if unknown.
	writtenAt, createdAt int64
	details              *details // nil for most objects
	writers              *writers // nil if unknown, and for an object that was not written since its creation
	ignore               bool
	match                bool
	AsCreated            bool // it was apparently not written since its creation
}

// details contains the fields that only some objects have.
type details struct {
	writer    events.Cause // who writes a Secret, according to its own metadata and data
	asked     request
	temporary bool       // a Secret holds a certificate that is used until the real one is issued
	status    *status    // of an ExternalSecret or a Certificate, nil if it cannot be read
	mounted   *podStatus // of a pod, which is part of a SecretProviderClass
	hold      string     // why the source is on hold, empty if it is not
	generated *generated // keys that are derived from others, nil if there are none
	ignoring  *ignoring  // the keys that do not count, nil if all count
	keystores *keystores // the keystore settings of a Certificate, nil if it has none
}

// creationTakes is the maximum difference between the times that the API server records for one creation. They are in whole seconds.
const creationTakes = 2 * time.Second

// newObject reduces the content of an API object. It keeps no reference to the data or the metadata.
func newObject(ring *Keyring, kind events.Kind, meta *metav1.ObjectMeta, data map[string][]byte) *Object {
	source := nameOf(kind, meta)
	written := newestWrite(meta)
	return &Object{
		Source: source, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		fingerprints: ring.fingerprint(source, data),
		extras: extras{
			writtenAt: written.Unix(), createdAt: meta.CreationTimestamp.Unix(), writers: writersOf(meta, written),
			AsCreated: isAsCreated(meta, written),
		},
	}
}

// isAsCreated reports whether an object whose newest write is known was apparently not written since its creation.
func isAsCreated(meta *metav1.ObjectMeta, written time.Time) bool {
	return written.Sub(meta.CreationTimestamp.Time) <= creationTakes
}

// heed applies the annotations of the source.
func (o *Object) heed(text map[string]string, keys reloader.Annotations) {
	o.ignore = text[annotationIgnore] == "true" || text[keys.Ignore] == "true"
	o.match = text[keys.Match] == "true"
	if hold := events.HoldText(text[events.AnnotationHold]); hold != "" {
		o.addDetails().hold = hold
	}
	if ignored := text[annotationIgnoreKeys]; ignored != "" {
		i := o.addIgnoring()
		i.patterns, i.problem = parseIgnored(ignored)
	}
}

// rare returns the fields that only some objects have.
func (o *Object) rare() details {
	if o.details == nil {
		return details{}
	}
	return *o.details
}

// addDetails returns the details of the object, creating them if necessary.
func (o *Object) addDetails() *details {
	if o.details == nil {
		o.details = &details{}
	}
	return o.details
}

// HasContentOf reports whether the object has the same data as another state of it.
func (o *Object) HasContentOf(other *Object) bool {
	return slices.EqualFunc(o.fingerprints, other.fingerprints, func(a, b fingerprints) bool { return a.all == b.all })
}

// Created returns when the object was created, or zero if that is unknown.
func (o *Object) Created() time.Time { return timeOf(o.createdAt) }

// written returns the time of the newest write, or zero if that is unknown.
func (o *Object) written() time.Time { return timeOf(o.writtenAt) }

// timeOf returns the time of seconds since 1970, or zero if they are unknown.
func timeOf(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// About returns the source of the object: itself, unless it is a part of another one. Its name is empty if it cannot be read.
func (o *Object) About() events.Source {
	if part := o.podStatus(); part != nil {
		return part.class
	}
	return o.Source
}

// IsPart reports whether the object is a part of its source, which may outlast it.
func (o *Object) IsPart() bool { return o.podStatus() != nil }

// podStatus returns the reduced status of a pod, and nil for an object of another kind.
func (o *Object) podStatus() *podStatus { return o.rare().mounted }

// nameOf names a source. The sources of a namespace share one string for its name, because there may be many.
func nameOf(kind events.Kind, meta metav1.Object) events.Source {
	return events.Source{Kind: kind, Namespace: unique.Make(meta.GetNamespace()).Value(), Name: meta.GetName()}
}

// GetObjectMeta returns the metadata by which a reflector identifies the object while a list is streamed. It is made on demand, because it would be
// most of the object's size.
func (o *Object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: o.Source.Name, Namespace: o.Source.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion}
}

// newestWrite returns the time of the newest write that the API server recorded, or zero.
func newestWrite(meta *metav1.ObjectMeta) time.Time {
	newest := meta.CreationTimestamp.Time
	for _, entry := range meta.ManagedFields {
		if entry.Time != nil && entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	return newest.UTC()
}
