package externalsecret

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ClusterExternalSecret holds the metadata of a ClusterExternalSecret. What it reads is known from the ExternalSecrets that
// the operator creates for it.
type ClusterExternalSecret struct {
	// ObjectMeta has the name, UID, resourceVersion, AnnotationForceSync and the keyturn.dev annotations.
	metav1.ObjectMeta
}

// ReadCluster reads a ClusterExternalSecret.
func ReadCluster(obj *unstructured.Unstructured) *ClusterExternalSecret {
	return &ClusterExternalSecret{ObjectMeta: metaOf(obj)}
}
