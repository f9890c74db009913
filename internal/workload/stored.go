package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stored is what a patch has to know of a workload as the API server keeps it.
type stored struct {
	// record has the annotations that are written on the workload itself, or must be unchanged, those that it has.
	record map[string]string
	// annotated and templateAnnotated say that the workload and its pod template have annotations, whoever wrote them. MetaTraced and traced say
	// that they have AnnotationTraceparent.
	annotated, templateAnnotated, metaTraced, traced bool
	// containers are nil without --reloader. ByVariable is Reading.Variables.
	containers *containers
	byVariable bool
}

func storedOf(meta *metav1.ObjectMeta, template *corev1.PodTemplateSpec, reading Reading) stored {
	s := stored{annotated: len(meta.Annotations) > 0, templateAnnotated: len(template.Annotations) > 0, byVariable: reading.Variables}
	if reading.Reloader {
		s.containers = containersOf(template)
	}
	_, s.metaTraced = meta.Annotations[AnnotationTraceparent]
	_, s.traced = template.Annotations[AnnotationTraceparent]
	for _, name := range []string{annotationRolled, annotationReverted} {
		if text, ok := meta.Annotations[name]; ok {
			s.keep(name, text)
		}
	}
	return s
}

// keep notes an annotation that is written on the workload itself.
func (s *stored) keep(name, text string) {
	if s.record == nil {
		s.record = make(map[string]string)
	}
	s.record[name] = text
}

// unchanged returns what tests that an annotation is as it was read.
func (s stored) unchanged(name string) operation {
	path := "/metadata/annotations/" + pointer(name)
	if before, ok := s.record[name]; ok {
		return test(path, before)
	}
	return test(path, nil)
}

// write returns what sets one of the annotations of the record, if it is still as it was read. An empty text removes it.
func (s stored) write(name, text string) []operation {
	path, tested := "/metadata/annotations/"+pointer(name), s.unchanged(name)
	switch _, ok := s.record[name]; {
	case ok && text == "":
		return []operation{tested, remove(path)}
	case !ok && text == "":
		return []operation{tested}
	}
	return []operation{tested, add(path, text)}
}
