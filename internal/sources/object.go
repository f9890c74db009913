package sources

import (
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// Annotations on a source.
const (
	annotationIgnore         = "keyturn.dev/ignore"
	annotationReloaderIgnore = "reloader.stakater.com/ignore"
	annotationReloaderMatch  = "reloader.stakater.com/match"
)

// object is what is kept of a source: what it is called and its fingerprints. It is what the informers cache.
type object struct {
	source          events.Source
	UID             types.UID
	ResourceVersion string

	// prints are those of the data. An object whose content is how it stands has none: see standing.
	prints    []prints
	writtenAt time.Time
	// about is nil where there is nothing of it, as with most.
	about  *about
	ignore bool
	match  bool
	// asCreated says that nobody seems to have written the object since it was created.
	asCreated bool
	// narrowed says that only some of the keys count: see counted.
	narrowed bool
}

// about is what is known of an object besides its data.
type about struct {
	// writer is who writes a Secret, where the Secret itself says so.
	writer events.Cause
	asked  request
	// temporary says that a Secret holds a certificate until the real one is issued.
	temporary bool
	// standing is there for ExternalSecrets and Certificates, nil where it cannot be read.
	standing *standing
}

// creationTakes is by how much the API server's times of one creation may differ. They have one second's precision.
const creationTakes = 2 * time.Second

// reduce makes an object of what the API server sent. It keeps no reference to the data or to the metadata.
func (r *Keyring) reduce(kind events.Kind, meta *metav1.ObjectMeta, data map[string][]byte) *object {
	source := nameOf(kind, meta)
	written := writtenAt(meta)
	return &object{
		source: source, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		prints:    r.fingerprint(source, data),
		ignore:    meta.Annotations[annotationIgnore] == "true" || meta.Annotations[annotationReloaderIgnore] == "true",
		match:     meta.Annotations[annotationReloaderMatch] == "true",
		writtenAt: written,
		asCreated: written.Sub(meta.CreationTimestamp.Time) <= creationTakes,
	}
}

// nameOf names a source. The sources of a namespace share the text of its name: there may be many.
func nameOf(kind events.Kind, meta metav1.Object) events.Source {
	return events.Source{Kind: kind, Namespace: unique.Make(meta.GetNamespace()).Value(), Name: meta.GetName()}
}

// GetObjectMeta is how the informers know the object. The metadata is made when they ask: its fields are nearly all empty,
// and kept they would be most of what an object takes.
func (o *object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Name: o.source.Name, Namespace: o.source.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}
}

var _ metav1.ObjectMetaAccessor = (*object)(nil)

// writtenAt is the time of the newest write that the API server recorded. It is zero where it recorded none.
func writtenAt(meta *metav1.ObjectMeta) time.Time {
	newest := meta.CreationTimestamp.Time
	for _, entry := range meta.ManagedFields {
		if entry.Time != nil && entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	return newest.UTC()
}

// under gives the prints that were made under the key with the id.
func (o *object) under(keyID string) (prints, bool) { return under(o.prints, keyID) }

func under(list []prints, keyID string) (prints, bool) {
	for _, p := range list {
		if p.keyID == keyID {
			return p, true
		}
	}
	return prints{}, false
}
