package workload

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/internal/events"
)

// annotationWave, on a workload, is an integer: workloads of a lower wave roll first for the same change.
const annotationWave = "keyturn.dev/wave"

// Workload is a snapshot of the parts of a workload that matter here. It is immutable.
type Workload struct {
	ID       events.Workload
	Version  string
	Created  time.Time
	OptIn    OptIn
	Problems []error
	Refs     []Reference
	Rolled   map[string]RolledFor
	Wave     int
	// Revision is the revision annotation of the pod template.
	Revision   string
	Generation int64
	Progress   Progress

	template [sha256.Size]byte
	// TemplateVersion is the resourceVersion of the last change of the pod template. Empty if unknown.
	TemplateVersion string
}

// Key identifies a workload in the index.
type Key struct {
	Kind, Namespace, Name string
}

// KeyOf returns the key of the workload that an outcome names.
func KeyOf(id events.Workload) Key { return Key{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name} }

// Key returns the key of the workload.
func (w *Workload) Key() Key { return KeyOf(w.ID) }

// Read returns the workload of an object. It keeps no reference to the object.
func Read(k Kind, obj runtime.Object, rollAll bool) (*Workload, bool) {
	parts, ok := k.read(obj)
	if !ok {
		return nil, false
	}
	meta, template := parts.meta, parts.template
	w := &Workload{
		ID:         events.Workload{Kind: k.Name, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID)},
		Version:    meta.ResourceVersion,
		Created:    meta.CreationTimestamp.Time,
		Refs:       references(template),
		Rolled:     parseRolled(meta.Annotations[annotationRolled]),
		Revision:   k.strategy.revision(template),
		Generation: meta.Generation,
		Progress:   parts.progress,
		template:   digest(template),
	}
	w.OptIn, w.Problems = parseOptIn(meta.Annotations, template.Annotations, rollAll)
	if text, ok := meta.Annotations[annotationWave]; ok {
		wave, err := strconv.Atoi(text)
		if err != nil {
			w.Problems = append(w.Problems, &itemError{Annotation: annotationWave, Item: text, Problem: "is not a whole number"})
		}
		w.Wave = wave
	}
	return w, true
}

// digest returns a digest of the template.
func digest(template *corev1.PodTemplateSpec) [sha256.Size]byte {
	// The encoding is deterministic, and cannot fail for a template that was decoded.
	encoded, err := template.Marshal()
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(encoded)
}

// Reference returns the pod spec's reference to the source, or nil.
func (w *Workload) Reference(source events.Source) *Reference {
	for i := range w.Refs {
		if ref := &w.Refs[i]; RefersTo(ref.Kind, ref.Name, source) && SourceNamed(ref.Kind, w.ID.Namespace, "").Namespace == source.Namespace {
			return ref
		}
	}
	return nil
}

// Sources returns the sources that the workload references or names in an annotation. It does not resolve patterns.
func (w *Workload) Sources() []events.Source {
	list := w.OptIn.names(w.ID.Namespace)
	for _, ref := range w.Refs {
		list = append(list, SourceNamed(ref.Kind, w.ID.Namespace, ref.Name))
	}
	return list
}

// concerns reports whether a source can concern the workload.
func (w *Workload) concerns(source events.Source) bool {
	return w.OptIn.HasPatterns(source.Kind) || slices.ContainsFunc(w.Sources(), func(s events.Source) bool {
		return s.Namespace == source.Namespace && RefersTo(s.Kind, s.Name, source)
	})
}

// After sets what w alone does not show, given the state seen before, and returns w. exact means that w came as the watch event of
// a single write, and not from a list.
func (w *Workload) After(earlier *Workload, exact bool) *Workload {
	switch {
	case earlier != nil && earlier.ID.UID == w.ID.UID && earlier.template == w.template:
		w.TemplateVersion = earlier.TemplateVersion
	case exact:
		w.TemplateVersion = w.Version
	}
	return w
}
