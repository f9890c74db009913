package events

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of object that an event is about. It is a token of the subject and the extension "kind" of the event.
type Kind string

// The kinds of events.
const (
	KindSecret    Kind = "secret"
	KindConfigMap Kind = "configmap"
	// KindOpenBao is a secret in an OpenBao or Vault. It has no namespace, and its name has the form that StorePath.Source returns.
	KindOpenBao Kind = "openbao"
	// KindExternalSecret and KindCertificate are causes. Workloads depend on the Secret that they write, not on them.
	KindExternalSecret Kind = "externalsecret"
	KindCertificate    Kind = "certificate"
	// KindSecretProviderClass is what the Secrets Store CSI driver mounts into pods. Its content consists of the versions that the driver reports.
	KindSecretProviderClass Kind = "secretproviderclass"
	// KindRollout is the kind of an Outcome.
	KindRollout Kind = "rollout"
	// KindProjection is the kind of a Projection.
	KindProjection Kind = "projection"
	// KindCluster is the kind of a Claim and of a Watched.
	KindCluster Kind = "cluster"
)

// resources has the path of each source kind in the Kubernetes API, before and after the namespace.
var resources = map[Kind]struct{ api, plural string }{
	KindSecret:         {"/api/v1", "secrets"},
	KindConfigMap:      {"/api/v1", "configmaps"},
	KindExternalSecret: {"/apis/external-secrets.io/v1", "externalsecrets"},
	KindCertificate:    {"/apis/cert-manager.io/v1", "certificates"},

	KindSecretProviderClass: {"/apis/secrets-store.csi.x-k8s.io/v1", "secretproviderclasses"},
}

// SourceKinds returns the kinds that workloads can depend on.
func SourceKinds() []Kind {
	return []Kind{KindConfigMap, KindOpenBao, KindSecret, KindSecretProviderClass}
}

// Source names an object that workloads depend on.
type Source struct {
	Kind Kind
	// Namespace is the namespace of the Kubernetes object. It is empty for KindOpenBao.
	Namespace string
	Name      string
}

// isLegal reports whether an object can have this name. There are no events about any other name.
func (s Source) isLegal() bool {
	if s.Kind == KindOpenBao {
		_, err := s.StorePath()
		return s.Namespace == "" && err == nil
	}
	return isSubdomain(s.Namespace) && isSubdomain(s.Name)
}

// String returns the form used in annotations and logs, without the namespace: "secret/db",
// "openbao/bao/root/secret/shop/db".
func (s Source) String() string { return string(s.Kind) + "/" + s.Name }

// selfLink returns the "subject" attribute of the source's events: the path of the object in the Kubernetes API, as
// `kubectl get --raw` takes it, or openbao://<store>/<mount>/<path>.
func (s Source) selfLink() string {
	if s.Kind == KindOpenBao {
		// Change.validate rejects a name that is not one of a path.
		path, _ := s.StorePath()
		return path.link()
	}
	resource := resources[s.Kind]
	return resource.api + "/namespaces/" + s.Namespace + "/" + resource.plural + "/" + s.Name
}

// ParseSource parses the form of Source.String. The namespace of the result is empty.
func ParseSource(text string) (Source, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || !slices.Contains(SourceKinds(), Kind(kind)) || name == "" {
		return Source{}, fmt.Errorf("source %q: want secret/<name>, configmap/<name>, secretproviderclass/<name> or "+
			"openbao/<store>/<namespace>/<mount>/<path>", text)
	}
	return Source{Kind: Kind(kind), Name: name}, nil
}
