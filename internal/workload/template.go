package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Template returns the metadata and the pod template of an object, and false for an object of another kind.
func (k Kind) Template(obj runtime.Object) (*metav1.ObjectMeta, *corev1.PodTemplateSpec, bool) {
	p, ok := k.read(obj)
	return p.meta, p.template, ok
}
