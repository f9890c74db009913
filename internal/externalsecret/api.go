package externalsecret

import (
	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIVersion is the group and version of what is read, as objects have it.
const APIVersion = esv1.Group + "/" + esv1.Version

// The resources of External Secrets Operator that are read.
var (
	ExternalSecrets        = resource("externalsecrets")
	SecretStores           = resource("secretstores")
	ClusterSecretStores    = resource("clustersecretstores")
	ClusterExternalSecrets = resource("clusterexternalsecrets")
)

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: esv1.Group, Version: esv1.Version, Resource: plural}
}

// AnnotationForceSync is the annotation whose change has an ExternalSecret synced. The operator copies that of a
// ClusterExternalSecret to the ExternalSecrets that it makes; all other annotations of these it removes.
const AnnotationForceSync = esv1.AnnotationForceSync

// annotationPrefix is that of the annotations of ours, which are kept as well.
const annotationPrefix = "keyturn.dev/"

// storeSpec is what matters of a SecretStore or a ClusterSecretStore. Of the types of the API only the parts are used: what
// is newer about one of the many providers must not be in the way, and the provider openBao is newer than the types.
type storeSpec struct {
	Spec struct {
		Provider struct {
			Vault   *providerSpec `json:"vault"`
			OpenBao *providerSpec `json:"openBao"`
		} `json:"provider"`
		Conditions []esv1.ClusterSecretStoreCondition `json:"conditions"`
	} `json:"spec"`
}

// providerSpec is what both providers have, by the same names.
type providerSpec struct {
	Server    string                   `json:"server"`
	Path      *string                  `json:"path"`
	Version   esv1.VaultKVStoreVersion `json:"version"`
	Namespace string                   `json:"namespace"`
}
