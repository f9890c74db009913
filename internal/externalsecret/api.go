// Package externalsecret reads the objects of External Secrets Operator: the secrets that they read from OpenBao and Vault, the objects that they
// write, the result of their last sync, and whether they can be synced now. Only this package reads these types.
//
// Callers pass objects as the API server returns them. The package follows the operator's own rules, even odd ones. Where the objects do not show
// something, such as the tags of a secret, it assumes a read: a needless sync is cheap, a missed change is not.
package externalsecret

import (
	"regexp"
	"strconv"
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIVersion is the apiVersion of the objects that are read.
const APIVersion = esv1.Group + "/" + esv1.Version

// These are the resources of External Secrets Operator that are read.
var (
	ExternalSecrets        = esv1.SchemeGroupVersion.WithResource("externalsecrets")
	SecretStores           = esv1.SchemeGroupVersion.WithResource("secretstores")
	ClusterSecretStores    = esv1.SchemeGroupVersion.WithResource("clustersecretstores")
	ClusterExternalSecrets = esv1.SchemeGroupVersion.WithResource("clusterexternalsecrets")
)

// IsCluster reports whether a resource is cluster-scoped.
func IsCluster(resource schema.GroupVersionResource) bool {
	return resource == ClusterSecretStores || resource == ClusterExternalSecrets
}

// AnnotationForceSync is the annotation by whose change the operator syncs an ExternalSecret. The operator copies it from a ClusterExternalSecret to
// the ExternalSecrets that it creates, and removes all of their other annotations.
const AnnotationForceSync = esv1.AnnotationForceSync

// annotationPrefix is the prefix of Keyturn's own annotations, which metaOf also keeps.
const annotationPrefix = "keyturn.dev/"

// ReadCluster returns the kept metadata of a ClusterExternalSecret. Its ExternalSecrets show the secrets that it reads.
func ReadCluster(obj *unstructured.Unstructured) *metav1.ObjectMeta { return new(metaOf(obj)) }

// owner returns the name of the ClusterExternalSecret that controls an object, or an empty string.
func owner(obj *unstructured.Unstructured) string {
	controller := metav1.GetControllerOf(obj)
	if controller == nil || controller.Kind != esv1.ClusterExtSecretKind || !strings.HasPrefix(controller.APIVersion, esv1.Group+"/") {
		return ""
	}
	return controller.Name
}

// metaOf returns the kept metadata of an object.
func metaOf(obj *unstructured.Unstructured) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
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

// ForceSync is a value of AnnotationForceSync that Keyturn has written. It is a single value, because no other annotation of a ClusterExternalSecret
// reaches its ExternalSecrets and their Secrets.
type ForceSync struct {
	Event       string // the id of the event that the sync is for
	Repeat      int    // counts the repeated requests
	Traceparent string // the W3C traceparent of the event; empty if it has no trace
}

// forceSync is the form of a value. The part after the last @ distinguishes it from values of other writers, which are mostly times.
var forceSync = regexp.MustCompile(`(?s)^(.+?)(?:-r([1-9][0-9]?))?@([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})?$`)

// String returns the value. It depends only on the event and the repeat, so that a patch that is sent twice causes one sync.
func (f ForceSync) String() string {
	value := f.Event
	if f.Repeat > 0 {
		value += "-r" + strconv.Itoa(f.Repeat)
	}
	return value + "@" + f.Traceparent
}

// ParseForceSync reads a value. It returns false for a value that Keyturn has not written.
func ParseForceSync(value string) (ForceSync, bool) {
	parts := forceSync.FindStringSubmatch(value)
	if parts == nil {
		return ForceSync{}, false
	}
	repeat, _ := strconv.Atoi(parts[2]) // at most two digits
	return ForceSync{Event: parts[1], Repeat: repeat, Traceparent: parts[3]}, true
}
