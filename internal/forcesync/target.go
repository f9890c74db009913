package forcesync

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

// annotationSyncedFrom, on an ExternalSecret, is its status.syncedResourceVersion at the time of the patch. The sync is done when the
// status has another.
const annotationSyncedFrom = "keyturn.dev/synced-from"

// target is the object that is patched to sync ExternalSecrets: the ExternalSecret itself, or the ClusterExternalSecret that made it and
// others, because the operator reverts patches of those.
type target struct {
	resource    schema.GroupVersionResource
	namespace   string
	name        string
	uid         types.UID
	annotations map[string]string
}

// targetOf returns what to patch for an ExternalSecret. owner is the ClusterExternalSecret that made it, or nil.
func targetOf(es *externalsecret.ExternalSecret, owner *externalsecret.ClusterExternalSecret) target {
	if owner != nil {
		return target{externalsecret.ClusterExternalSecrets, "", owner.Name, owner.UID, owner.Annotations}
	}
	return target{externalsecret.ExternalSecrets, es.Namespace, es.Name, es.UID, es.Annotations}
}

func (t target) isCluster() bool { return t.resource == externalsecret.ClusterExternalSecrets }

// asked reports whether the annotations already ask for a sync for an event, and in which repeat.
func (t target) asked(event string) (repeat int, ok bool) {
	forced, ok := externalsecret.ParseForceSync(t.annotations[externalsecret.AnnotationForceSync])
	if !ok || forced.Event != event {
		return 0, false
	}
	return forced.Repeat, true
}

// syncedFrom returns the version before the sync that the annotations ask for. ok is false if they have none: those of a
// ClusterExternalSecret never do, because it stands for several.
func (t target) syncedFrom() (version string, ok bool) {
	version, ok = t.annotations[annotationSyncedFrom]
	return version, ok && !t.isCluster()
}
