package externalsecret

import (
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// owner returns the name of the ClusterExternalSecret that controls an object, or an empty string.
func owner(obj *unstructured.Unstructured) string {
	controller := metav1.GetControllerOf(obj)
	if controller == nil || controller.Kind != esv1.ClusterExtSecretKind || !strings.HasPrefix(controller.APIVersion, esv1.Group+"/") {
		return ""
	}
	return controller.Name
}

// metaOf returns the metadata that is kept of an object.
func metaOf(obj *unstructured.Unstructured) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	for name, value := range obj.GetAnnotations() {
		if name != AnnotationForceSync && !strings.HasPrefix(name, annotationPrefix) {
			continue
		}
		if kept.Annotations == nil {
			kept.Annotations = make(map[string]string)
		}
		kept.Annotations[name] = value
	}
	return kept
}
