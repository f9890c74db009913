// Package externalsecret reads the objects of External Secrets Operator: what they read from OpenBao and Vault, what they
// write, how the last sync went, and whether they can be asked to sync now. Only this package reads these types.
//
// It makes no requests: callers pass in objects as the API server returns them, and keep only the parts that matter here. It follows the operator's
// own rules, odd ones included, because what counts is what the operator will read. Where something cannot be known from the objects, such as the
// tags of a secret, it assumes a read: a needless sync is cheap, a missed change is not.
package externalsecret

import (
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIVersion is the apiVersion of the objects that are read.
const APIVersion = esv1.Group + "/" + esv1.Version

// The resources of External Secrets Operator that are read.
var (
	ExternalSecrets        = resource("externalsecrets")
	SecretStores           = resource("secretstores")
	ClusterSecretStores    = resource("clustersecretstores")
	ClusterExternalSecrets = resource("clusterexternalsecrets")
)

// IsCluster reports whether a resource is cluster-scoped.
func IsCluster(resource schema.GroupVersionResource) bool {
	return resource == ClusterSecretStores || resource == ClusterExternalSecrets
}

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: esv1.Group, Version: esv1.Version, Resource: plural}
}

// AnnotationForceSync is the annotation whose change makes the operator sync an ExternalSecret. The operator copies it from a
// ClusterExternalSecret to the ExternalSecrets that it creates, and removes all other annotations of those.
const AnnotationForceSync = esv1.AnnotationForceSync

// annotationPrefix is the prefix of Keyturn's own annotations, which metaOf also keeps.
const annotationPrefix = "keyturn.dev/"

// ReadCluster returns the metadata of a ClusterExternalSecret, as metaOf keeps it. Its ExternalSecrets show what it reads.
func ReadCluster(obj *unstructured.Unstructured) *metav1.ObjectMeta {
	kept := metaOf(obj)
	return &kept
}

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
