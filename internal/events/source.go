package events

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what kind of object an event is about. It is the kind token of the subject and the "kind" extension of the event.
type Kind string

// The kinds of sources, and the kind under which outcomes are published.
const (
	KindSecret    Kind = "secret"
	KindConfigMap Kind = "configmap"
	// KindOpenBao is a secret in an OpenBao or Vault. Its name is that of a StorePath, and it has no namespace.
	KindOpenBao Kind = "openbao"
	// KindExternalSecret and KindCertificate are causes: what depends on them depends on the Secret that they write.
	KindExternalSecret Kind = "externalsecret"
	KindCertificate    Kind = "certificate"
	KindRollout        Kind = "rollout"
	// KindCluster is that of a Claim. Nothing depends on it.
	KindCluster Kind = "cluster"
)

// resources gives the path of each source kind of the Kubernetes API, before and after the namespace, for self links.
var resources = map[Kind]struct{ api, plural string }{
	KindSecret:         {"/api/v1", "secrets"},
	KindConfigMap:      {"/api/v1", "configmaps"},
	KindExternalSecret: {"/apis/external-secrets.io/v1", "externalsecrets"},
	KindCertificate:    {"/apis/cert-manager.io/v1", "certificates"},
}

// SourceKinds lists the kinds that can change and that workloads depend on.
func SourceKinds() []Kind { return []Kind{KindConfigMap, KindOpenBao, KindSecret} }

// Source names something whose content workloads depend on.
type Source struct {
	Kind Kind
	// Namespace is that of the Kubernetes object, empty for KindOpenBao.
	Namespace string
	Name      string
}

// String is the form that people and annotations use within one namespace: "secret/db", "openbao/bao/root/secret/shop/db".
func (s Source) String() string { return string(s.Kind) + "/" + s.Name }

// SelfLink is the "subject" attribute of the event: the path of the object in the Kubernetes API, as `kubectl get --raw`
// takes it, or openbao://<store>/<mount>/<path>.
func (s Source) SelfLink() string {
	if s.Kind == KindOpenBao {
		// A name that is not one of a path has no link, and no event either: see Change.validate.
		path, _ := s.StorePath()
		return path.link()
	}
	resource := resources[s.Kind]
	return resource.api + "/namespaces/" + s.Namespace + "/" + resource.plural + "/" + s.Name
}

// ParseSource reads the form that String writes. The namespace is left to the caller.
func ParseSource(text string) (Source, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || !slices.Contains(SourceKinds(), Kind(kind)) || name == "" {
		return Source{}, fmt.Errorf("source %q: want secret/<name>, configmap/<name> or openbao/<store>/<namespace>/<mount>/<path>", text)
	}
	return Source{Kind: Kind(kind), Name: name}, nil
}

// Workload names an object that is rolled.
type Workload struct {
	// Kind is the lower-case singular: "deployment", "statefulset", "daemonset", "cronjob".
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// String is the form that people and kubectl use within one namespace: "deployment/web".
func (w Workload) String() string { return w.Kind + "/" + w.Name }
