package actuate

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

// workload is what is kept of a workload. It is immutable: a later state of it is another one.
type workload struct {
	id       events.Workload
	version  string
	created  time.Time
	optIn    OptIn
	problems []error
	refs     []Reference
	rolled   map[string]RolledFor
	wave     int
	// revision is the annotation of the pod template.
	revision   string
	generation int64
	progress   progress

	template [sha256.Size]byte
	// templateVersion is the resourceVersion at which the pod template became what it is. Empty where that is not known.
	templateVersion string
}

// workloadKey is the identity of a workload in the index.
type workloadKey struct {
	kind, namespace, name string
}

func (w *workload) key() workloadKey { return workloadKey{w.id.Kind, w.id.Namespace, w.id.Name} }

// readWorkload makes a workload of what the API server sent. It keeps nothing of the object itself.
func readWorkload(k kind, obj runtime.Object, rollAll bool) (*workload, bool) {
	parts, ok := k.read(obj)
	if !ok {
		return nil, false
	}
	meta, template := parts.meta, parts.template
	w := &workload{
		id:         events.Workload{Kind: k.name, Namespace: meta.Namespace, Name: meta.Name, UID: string(meta.UID)},
		version:    meta.ResourceVersion,
		created:    meta.CreationTimestamp.Time,
		refs:       References(template),
		rolled:     parseRolled(meta.Annotations[annotationRolled]),
		revision:   template.Annotations[annotationRevision],
		generation: meta.Generation,
		progress:   parts.progress,
		template:   digest(template),
	}
	w.optIn, w.problems = ParseOptIn(meta.Annotations, template.Annotations, rollAll)
	if text, ok := meta.Annotations[annotationWave]; ok {
		wave, err := strconv.Atoi(text)
		if err != nil {
			w.problems = append(w.problems, &ItemError{Annotation: annotationWave, Item: text, Problem: "is not a whole number"})
		}
		w.wave = wave
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

// reference gives the pod spec's reference to the source, nil where there is none.
func (w *workload) reference(source events.Source) *Reference {
	for i := range w.refs {
		if ref := &w.refs[i]; refersTo(ref.Kind, ref.Name, source) && sourceNamed(ref.Kind, w.id.Namespace, "").Namespace == source.Namespace {
			return ref
		}
	}
	return nil
}

// sources lists the sources that are known by name to concern the workload: those it references and those it names.
func (w *workload) sources() []events.Source {
	list := w.optIn.Names(w.id.Namespace)
	for _, ref := range w.refs {
		list = append(list, sourceNamed(ref.Kind, w.id.Namespace, ref.Name))
	}
	return list
}

// concerns tells whether a source may concern the workload.
func (w *workload) concerns(source events.Source) bool {
	return w.optIn.HasPatterns(source.Kind) || slices.ContainsFunc(w.sources(), func(s events.Source) bool {
		return s.Namespace == source.Namespace && refersTo(s.Kind, s.Name, source)
	})
}

// after tells what is known of w by having seen an earlier state of the same workload. Exact says that w came as one watch
// event of one write.
func (w *workload) after(earlier *workload, exact bool) *workload {
	switch {
	case earlier != nil && earlier.id.UID == w.id.UID && earlier.template == w.template:
		w.templateVersion = earlier.templateVersion
	case exact:
		w.templateVersion = w.version
	}
	return w
}
