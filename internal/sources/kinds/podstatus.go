package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
)

// secretsStore is the API of the Secrets Store CSI driver.
var secretsStore = schema.GroupVersion{Group: "secrets-store.csi.x-k8s.io", Version: "v1"}

// kindPodStatus is the kind of a SecretProviderClassPodStatus. It is not a source: no event is about it.
const kindPodStatus events.Kind = "secretproviderclasspodstatus"

// podStatusKind is the kind of the driver's reports about one class in one pod: the IDs of the mounted objects and their versions. Some providers
// derive a version from the content, so it leaves the watcher only as a keyed fingerprint.
type podStatusKind struct{}

func (podStatusKind) Listing() Listing {
	return Listing{
		Kind: kindPodStatus, Resource: secretsStore.WithResource("secretproviderclasspodstatuses"), Grant: grantSecretProviderClasses,
	}
}

func (podStatusKind) Reduce(ring *Keyring, obj any) (*Object, bool) {
	resource, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return newPodStatus(ring, resource), true
}

// podStatus identifies the class and the pod of a status.
type podStatus struct {
	class     events.Source // without a name if the status cannot be read
	pod       types.UID     // the driver reuses the status of an earlier pod for a new pod of the same name
	rewritten bool          // the status was written after its creation, other than in its metadata
	// unversioned means that no object has a version, as after a failure of the provider, so that the mounted content is unknown.
	unversioned bool
}

// podStatusParts are the fields of the status that are read. Newer fields are ignored.
type podStatusParts struct {
	Status struct {
		Mounted bool   `json:"mounted"`
		Class   string `json:"secretProviderClassName"`
		Objects []struct {
			ID      string `json:"id"`
			Version string `json:"version"`
		} `json:"objects"`
	} `json:"status"`
}

// newPodStatus reduces a status to the fingerprint of its versions, which is equal for pods with the same versions. It has none while nothing is
// mounted, or without versions.
func newPodStatus(ring *Keyring, resource *unstructured.Unstructured) *Object {
	mounted := &podStatus{pod: podOf(resource), rewritten: resource.GetGeneration() > 1}
	writes := &metav1.ObjectMeta{CreationTimestamp: resource.GetCreationTimestamp(), ManagedFields: resource.GetManagedFields()}
	written := newestWrite(writes)
	reduced := &Object{
		Source: nameOf(kindPodStatus, resource), UID: resource.GetUID(), ResourceVersion: resource.GetResourceVersion(),
		extras: extras{writtenAt: written.Unix(), writers: writersOf(writes, written), details: &details{mounted: mounted}},
	}
	var parts podStatusParts
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(resource.Object, &parts); err != nil {
		return reduced
	}
	mounted.class = events.Source{
		Kind: events.KindSecretProviderClass, Namespace: reduced.Source.Namespace, Name: ifPrintable(parts.Status.Class, maxStatus),
	}
	if !parts.Status.Mounted || len(parts.Status.Objects) == 0 {
		return reduced
	}
	versions := make(map[string][]byte, len(parts.Status.Objects))
	mounted.unversioned = true
	for _, entry := range parts.Status.Objects {
		versions[entry.ID] = []byte(entry.Version)
		mounted.unversioned = mounted.unversioned && entry.Version == ""
	}
	if mounted.unversioned {
		return reduced
	}
	reduced.fingerprints = ring.fingerprint(mounted.class, versions)
	for i := range reduced.fingerprints {
		reduced.fingerprints[i].keys = nil // Pods read all keys.
	}
	return reduced
}

// podOf returns the UID of the pod that owns a status, or empty.
func podOf(resource *unstructured.Unstructured) types.UID {
	for _, owner := range resource.GetOwnerReferences() {
		if owner.Kind == "Pod" {
			return owner.UID
		}
	}
	return ""
}
