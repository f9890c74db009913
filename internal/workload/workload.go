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

// annotationWave, on a workload, is a whole number: for one change, the workloads of a lower wave are rolled first.
const annotationWave = "keyturn.dev/wave"

// Workload is what is kept of a workload. It is immutable: a later state of it is another one.
type Workload struct {
	ID       events.Workload
	Version  string
	Created  time.Time
	OptIn    OptIn
	Problems []error
	Refs     []Reference
	Rolled   map[string]RolledFor
	Wave     int
	// Revision is the annotation of the pod template.
	Revision   string
	Generation int64
	Progress   Progress

	template [sha256.Size]byte
	// TemplateVersion is the resourceVersion at which the pod template became what it is. Empty where that is not known.
	TemplateVersion string
}

// Key is the identity of a workload in the index.
type Key struct {
	Kind, Namespace, Name string
}

// KeyOf returns the key of the workload that an outcome names.
func KeyOf(id events.Workload) Key { return Key{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name} }

// Key returns the key of the workload.
func (w *Workload) Key() Key { return KeyOf(w.ID) }

// Read makes a workload of what the API server sent. It keeps nothing of the object itself.
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

// digest tells templates apart.
func digest(template *corev1.PodTemplateSpec) [sha256.Size]byte {
	// The encoding of the API is deterministic, and of a template that was decoded it cannot fail.
	encoded, err := template.Marshal()
	if err != nil {
		return [sha256.Size]byte{}
	}
	return sha256.Sum256(encoded)
}

// Reference gives the pod spec's reference to the source, nil where there is none.
func (w *Workload) Reference(source events.Source) *Reference {
	for i := range w.Refs {
		if ref := &w.Refs[i]; RefersTo(ref.Kind, ref.Name, source) && SourceNamed(ref.Kind, w.ID.Namespace, "").Namespace == source.Namespace {
			return ref
		}
	}
	return nil
}

// Sources lists the sources that are known by name to concern the workload: those it references and those it names.
func (w *Workload) Sources() []events.Source {
	list := w.OptIn.names(w.ID.Namespace)
	for _, ref := range w.Refs {
		list = append(list, SourceNamed(ref.Kind, w.ID.Namespace, ref.Name))
	}
	return list
}

// concerns tells whether a source may concern the workload.
func (w *Workload) concerns(source events.Source) bool {
	return w.OptIn.HasPatterns(source.Kind) || slices.ContainsFunc(w.Sources(), func(s events.Source) bool {
		return s.Namespace == source.Namespace && RefersTo(s.Kind, s.Name, source)
	})
}

// After tells what is known of w by having seen an earlier state of the same workload. Exact says that w came as one watch
// event of one write.
func (w *Workload) After(earlier *Workload, exact bool) *Workload {
	switch {
	case earlier != nil && earlier.ID.UID == w.ID.UID && earlier.template == w.template:
		w.TemplateVersion = earlier.TemplateVersion
	case exact:
		w.TemplateVersion = w.Version
	}
	return w
}
