package externalsecret

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ClusterExternalSecret is what matters of a ClusterExternalSecret. What it reads is seen in the ExternalSecrets that it
// makes.
type ClusterExternalSecret struct {
	// ObjectMeta has the name, the UID, the resourceVersion, AnnotationForceSync and the annotations of ours.
	metav1.ObjectMeta
}

// ReadCluster reads a ClusterExternalSecret.
func ReadCluster(obj *unstructured.Unstructured) *ClusterExternalSecret {
	return &ClusterExternalSecret{ObjectMeta: metaOf(obj)}
}
