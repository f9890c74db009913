package externalsecret

import (
	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
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

// storeSpec decodes only the parts of a SecretStore or ClusterSecretStore that are needed: a newer field of one of the many
// providers must not make decoding fail, and the provider openBao is newer than the types.
type storeSpec struct {
	Spec struct {
		Provider struct {
			Vault   *providerSpec `json:"vault"`
			OpenBao *providerSpec `json:"openBao"`
		} `json:"provider"`
		Conditions []esv1.ClusterSecretStoreCondition `json:"conditions"`
	} `json:"spec"`
}

// providerSpec has the fields that both providers share.
type providerSpec struct {
	Server    string                   `json:"server"`
	Path      *string                  `json:"path"`
	Version   esv1.VaultKVStoreVersion `json:"version"`
	Namespace string                   `json:"namespace"`
}
