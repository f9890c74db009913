package externalsecret

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// ExternalSecret is what matters of an ExternalSecret.
type ExternalSecret struct {
	// ObjectMeta has the namespace, the name, the UID, the resourceVersion, AnnotationForceSync and the annotations of ours.
	metav1.ObjectMeta
	// Target is what it writes. It is empty where that is neither a Secret nor a ConfigMap.
	Target events.Source
	// Owner is the name of the ClusterExternalSecret that made it. Empty: it was made by somebody else.
	Owner string
	// SyncedVersion is its status.syncedResourceVersion: a text that is another after a sync that a change of its metadata or
	// of its spec led to. Empty: it was never synced.
	SyncedVersion string
	// RefreshTime is when the last sync began, by the clock of the operator, in whole seconds.
	RefreshTime time.Time
	// Ready and Failed are the two answers of its condition Ready. Neither is true where there is none yet.
	Ready, Failed bool
	// Problems say what of its spec cannot be read. The rest counts.
	Problems []error

	references []reference
	policy     esv1.ExternalSecretRefreshPolicy
	// noInterval says that its refreshInterval is zero.
	noInterval bool
	// generates says that an entry of it is made by a generator.
	generates bool
}

// reference is an entry of data or dataFrom.
type reference struct {
	store types.NamespacedName
	key   string
	// version is the one that is pinned.
	version string
	// metadata says that the metadata of the secret is read in place of its data.
	metadata bool
	// find is there where secrets are looked for, and no key is named.
	find *find
}

type find struct {
	path *string
	// name is nil where secrets are looked for by their tags. These are not known here, so any secret may have them.
	name *regexp.Regexp
}

// Read reads an ExternalSecret. One that is not as the API has it reads nothing, and has that among its Problems.
func Read(obj *unstructured.Unstructured) *ExternalSecret {
	es := &ExternalSecret{ObjectMeta: metaOf(obj), Owner: owner(obj)}
	var typed esv1.ExternalSecret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed); err != nil {
		es.Problems = append(es.Problems, err)
		return es
	}
	spec, status := &typed.Spec, &typed.Status
	es.Target = target(es.ObjectMeta, &spec.Target)
	es.policy = spec.RefreshPolicy
	es.noInterval = spec.RefreshInterval != nil && spec.RefreshInterval.Duration <= 0
	es.SyncedVersion, es.RefreshTime = status.SyncedResourceVersion, status.RefreshTime.Time
	for _, condition := range status.Conditions {
		if condition.Type == esv1.ExternalSecretReady {
			es.Ready, es.Failed = condition.Status == corev1.ConditionTrue, condition.Status == corev1.ConditionFalse
		}
	}
	for i := range spec.Data {
		var own *esv1.SecretStoreRef
		if source := spec.Data[i].SourceRef; source != nil {
			own = &source.SecretStoreRef
		}
		es.add(&spec.Data[i].RemoteRef, es.storeOf(own, spec.SecretStoreRef))
	}
	for i := range spec.DataFrom {
		es.addFrom(&spec.DataFrom[i], spec.SecretStoreRef)
	}
	return es
}

// target is what is written.
func target(meta metav1.ObjectMeta, spec *esv1.ExternalSecretTarget) events.Source {
	written := events.Source{Kind: events.KindSecret, Namespace: meta.Namespace, Name: spec.Name}
	if written.Name == "" {
		written.Name = meta.Name
	}
	switch manifest := spec.Manifest; {
	case manifest == nil, manifest.APIVersion == "v1" && manifest.Kind == "Secret":
		return written
	case manifest.APIVersion == "v1" && manifest.Kind == "ConfigMap":
		written.Kind = events.KindConfigMap
		return written
	}
	return events.Source{}
}

func (es *ExternalSecret) add(ref *esv1.ExternalSecretDataRemoteRef, store types.NamespacedName) {
	entry := reference{store: store, key: ref.Key, version: ref.Version}
	if ref.MetadataPolicy == esv1.ExternalSecretMetadataPolicyFetch {
		entry.metadata, entry.version = true, "" // metadata has no versions
	}
	es.references = append(es.references, entry)
}

func (es *ExternalSecret) addFrom(entry *esv1.ExternalSecretDataFromRemoteRef, whole esv1.SecretStoreRef) {
	var own *esv1.SecretStoreRef
	if source := entry.SourceRef; source != nil {
		if source.GeneratorRef != nil {
			es.generates = true
			return
		}
		own = source.SecretStoreRef
	}
	store := es.storeOf(own, whole)
	switch {
	case entry.Extract != nil:
		es.add(entry.Extract, store)
	case entry.Find != nil:
		f := &find{path: entry.Find.Path}
		if entry.Find.Name != nil {
			var err error
			if f.name, err = regexp.Compile(entry.Find.Name.RegExp); err != nil {
				es.Problems = append(es.Problems, fmt.Errorf("find.name.regexp: %w", err))
				return
			}
		}
		es.references = append(es.references, reference{store: store, find: f})
	}
}

// storeOf gives the name of the store of an entry: its own, or that of the whole.
func (es *ExternalSecret) storeOf(own *esv1.SecretStoreRef, whole esv1.SecretStoreRef) types.NamespacedName {
	ref := whole
	if own != nil && own.Name != "" {
		ref = *own
	}
	if ref.Kind == esv1.ClusterSecretStoreKind {
		return types.NamespacedName{Name: ref.Name}
	}
	return types.NamespacedName{Namespace: es.Namespace, Name: ref.Name}
}

// Stores lists the stores that it names, each once: SecretStores of its namespace, and without a namespace
// ClusterSecretStores.
func (es *ExternalSecret) Stores() []types.NamespacedName {
	var names []types.NamespacedName
	for i := range es.references {
		if name := es.references[i].store; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// owner is the name of the ClusterExternalSecret that controls an object.
func owner(obj *unstructured.Unstructured) string {
	controller := metav1.GetControllerOf(obj)
	if controller == nil || controller.Kind != esv1.ClusterExtSecretKind || !strings.HasPrefix(controller.APIVersion, esv1.Group+"/") {
		return ""
	}
	return controller.Name
}

// metaOf is what is kept of an object's metadata.
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
