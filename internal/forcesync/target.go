package forcesync

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// annotationSyncedFrom is the annotation with the ExternalSecret's status.syncedResourceVersion at the time of the patch. The sync is done
// when the status has another version.
const annotationSyncedFrom = "keyturn.dev/synced-from"

// target is the object that is patched to sync ExternalSecrets. It is the ExternalSecret itself or, if a ClusterExternalSecret created it,
// that one, because the operator reverts patches of the ExternalSecrets of a ClusterExternalSecret.
type target struct {
	resource    schema.GroupVersionResource
	namespace   string
	name        string
	uid         types.UID
	annotations map[string]string
}

// targetOf returns what to patch for an ExternalSecret. owner is the ClusterExternalSecret that created it, or nil.
func targetOf(es *externalsecret.ExternalSecret, owner *externalsecret.ClusterExternalSecret) target {
	if owner != nil {
		return target{externalsecret.ClusterExternalSecrets, "", owner.Name, owner.UID, owner.Annotations}
	}
	return target{externalsecret.ExternalSecrets, es.Namespace, es.Name, es.UID, es.Annotations}
}

func (t target) isCluster() bool { return t.resource == externalsecret.ClusterExternalSecrets }

// asked reports whether the annotations already ask for a sync for an event. If so, it returns which repeat they ask for.
func (t target) asked(event string) (repeat int, ok bool) {
	forced, ok := externalsecret.ParseForceSync(t.annotations[externalsecret.AnnotationForceSync])
	if !ok || forced.Event != event {
		return 0, false
	}
	return forced.Repeat, true
}

// syncedFrom returns the version before the sync that the annotations ask for. ok is false if they have none. Those of a
// ClusterExternalSecret never do, because it stands for several ExternalSecrets.
func (t target) syncedFrom() (version string, ok bool) {
	version, ok = t.annotations[annotationSyncedFrom]
	return version, ok && !t.isCluster()
}
