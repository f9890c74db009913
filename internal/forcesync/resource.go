package forcesync

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
)

// resource is a resource in a namespace, or in all of them.
type resource struct {
	schema.GroupVersionResource
	namespace string
	// read reduces an object to what the Index stores of it.
	read func(*unstructured.Unstructured) any
}

// String returns the resource as messages name it.
func (r resource) String() string { return kube.Scope(r.Resource, r.namespace) }

// watched lists the resources to watch for the ExternalSecrets of some namespaces.
func watched(namespaces []string) []resource {
	readStore := func(obj *unstructured.Unstructured) any { return externalsecret.ReadStore(obj) }
	readSecret := func(obj *unstructured.Unstructured) any { return externalsecret.Read(obj) }
	readCluster := func(obj *unstructured.Unstructured) any { return externalsecret.ReadCluster(obj) }
	var list []resource
	for _, namespace := range namespaces {
		list = append(list,
			resource{externalsecret.ExternalSecrets, namespace, readSecret},
			resource{externalsecret.SecretStores, namespace, readStore})
	}
	return append(list,
		resource{externalsecret.ClusterSecretStores, metav1.NamespaceAll, readStore},
		resource{externalsecret.ClusterExternalSecrets, metav1.NamespaceAll, readCluster})
}
