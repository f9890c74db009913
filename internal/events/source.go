package events

import (
	"context"
	"errors"
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
	// KindSecretProviderClass is content that the Secrets Store CSI driver mounts into pods, in the form of the versions that the driver reports.
	KindSecretProviderClass Kind = "secretproviderclass"
	KindRollout             Kind = "rollout"    // the kind of an Outcome
	KindProjection          Kind = "projection" // the kind of a Projection
	KindCluster             Kind = "cluster"    // the kind of a Claim and of a Watched
)

// resources contains the path of each source kind in the Kubernetes API, before and after the namespace.
var resources = map[Kind]struct{ api, plural string }{
	KindSecret:         {"/api/v1", "secrets"},
	KindConfigMap:      {"/api/v1", "configmaps"},
	KindExternalSecret: {"/apis/external-secrets.io/v1", "externalsecrets"},
	KindCertificate:    {"/apis/cert-manager.io/v1", "certificates"},

	KindSecretProviderClass: {"/apis/secrets-store.csi.x-k8s.io/v1", "secretproviderclasses"},
}

func (k Kind) isSource() bool {
	_, isResource := resources[k]
	return isResource || k == KindOpenBao
}

// SourceKinds returns the kinds that workloads can depend on.
func SourceKinds() []Kind {
	return []Kind{KindConfigMap, KindOpenBao, KindSecret, KindSecretProviderClass}
}

// Source names an object that workloads depend on.
type Source struct {
	Kind      Kind
	Namespace string // the namespace of the Kubernetes object; empty for KindOpenBao
	Name      string
}

// isLegal reports whether an object can have this name. There are no events about other names.
func (s Source) isLegal() bool {
	if s.Kind == KindOpenBao {
		_, err := s.StorePath()
		return s.Namespace == "" && err == nil
	}
	return isSubdomain(s.Namespace) && isSubdomain(s.Name)
}

// String returns the form used in annotations and logs, without the namespace: "secret/db", "openbao/bao/root/secret/shop/db".
func (s Source) String() string { return string(s.Kind) + "/" + s.Name }

// selfLink returns the "subject" attribute of the source's events: the path of the object in the Kubernetes API, as
// `kubectl get --raw` takes it, or openbao://<store>/<mount>/<path>.
func (s Source) selfLink() string {
	if s.Kind == KindOpenBao {
		// Change.validate rejects names that are not a path.
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

// Verb is the past tense in the type of an event: dev.keyturn.<kind>.<verb>.v1.
type Verb string

// The verbs of changes.
const (
	// VerbObserved means that a source exists that was not on the stream. It rolls no workload, unless it has Change.Since.
	VerbObserved Verb = "observed"
	VerbChanged  Verb = "changed" // the content of a source has changed
	// VerbDeleted means that a source was deleted. The stream drops this event, a tombstone, after 24 hours.
	VerbDeleted Verb = "deleted"
	VerbRotated Verb = "rotated" // VerbChanged for a secret in a store
	VerbSynced  Verb = "synced"  // an ExternalSecret was written to its Secret
	VerbIssued  Verb = "issued"  // a Certificate was issued or renewed
)

// The verbs of outcomes.
const (
	VerbStarted   Verb = "started"   // the pod template of a workload was patched and its pods are being replaced
	VerbCompleted Verb = "completed" // the last pod of a rollout is ready
	// VerbFailed means that a rollout, or the patch that should have started it, failed for good. It is also a verb of
	// changes: an ExternalSecret could not be synced, or a Certificate could not be issued.
	VerbFailed  Verb = "failed"
	VerbSkipped Verb = "skipped" // a change does not affect a workload that depends on its source
	VerbHeld    Verb = "held"    // a workload waits before it is rolled
)

// VerbApplied is a verb of projections. It means that fields of a resource now have the values of Secrets, or no longer have them. The other verbs of
// projections are VerbSkipped, if a Secret or a key is missing, and VerbFailed.
const VerbApplied Verb = "applied"

// VerbClaimed is the verb of a Claim, and VerbWatched is the verb of a Watched.
const (
	VerbClaimed Verb = "claimed"
	VerbWatched Verb = "watched"
)

// verbs lists the verbs of each kind.
var verbs = map[Kind][]Verb{
	KindSecret:         {VerbObserved, VerbChanged, VerbDeleted},
	KindConfigMap:      {VerbObserved, VerbChanged, VerbDeleted},
	KindOpenBao:        {VerbObserved, VerbRotated, VerbDeleted},
	KindExternalSecret: {VerbObserved, VerbSynced, VerbFailed, VerbDeleted},
	KindCertificate:    {VerbObserved, VerbIssued, VerbFailed, VerbDeleted},

	KindSecretProviderClass: {VerbObserved, VerbChanged, VerbDeleted},

	KindRollout: {VerbStarted, VerbCompleted, VerbFailed, VerbSkipped, VerbHeld},
	KindCluster: {VerbClaimed, VerbWatched},

	KindProjection: {VerbApplied, VerbSkipped, VerbFailed},
}

// Verbs returns the verbs of all events, in order.
func Verbs() []Verb {
	var all []Verb
	for _, of := range verbs {
		all = append(all, of...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Origins names the clusters whose changes an actuator acts on.
type Origins struct {
	Cluster string // the actuator's own cluster
	// StoresFrom lists the clusters whose watchers watch secret stores for it. Only their changes in stores are acted on. Each of these watchers
	// publishes under its own name, because copies for each cluster would need a user that may publish under every name.
	StoresFrom []string
}

// clusters returns the clusters whose changes of a kind are acted on. The actuator's own cluster is first.
func (o Origins) clusters(kind Kind) []string {
	clusters := []string{o.Cluster}
	if kind == KindOpenBao {
		clusters = append(clusters, o.StoresFrom...)
	}
	return clusters
}

// Filters returns the subject filters of the sources of a kind that a namespace can reference. Secrets in stores have no namespace.
func (o Origins) Filters(kind Kind, namespace string) []string {
	if kind != KindOpenBao {
		return []string{ChangesRoot + o.Cluster + "." + string(kind) + "." + encodeToken(namespace) + ".>"}
	}
	return StoreFilters(o.clusters(kind))
}

// lastReader reads the last event on a subject, as a Reader does.
type lastReader interface {
	Last(ctx context.Context, subject string) (Stored, error)
}

// Last returns the last event of a source. The error wraps ErrNotFound if there is none. For a name that no object can have, such as one from an
// annotation, it sends no request: NATS refuses a subject with a space, and a server closes the connection for a subject of more than 4 KiB.
func (o Origins) Last(ctx context.Context, reader lastReader, source Source) (Stored, error) {
	if !source.isLegal() {
		return Stored{}, fmt.Errorf("reading the last event of %.100q, which no object can be called: %w", source.String(), ErrNotFound)
	}
	var stored Stored
	var err error
	for _, cluster := range o.clusters(source.Kind) {
		if stored, err = reader.Last(ctx, Subject(cluster, source)); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return stored, err
}
