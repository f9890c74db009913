package forcesync

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// patch is one merge patch, and the syncs that it is for.
type patch struct {
	target target
	syncs  []*pendingSync
	body   []byte
}

// answer is the result of a patch.
type answer struct {
	patch patch
	// sent is when the patch was sent.
	sent time.Time
	// after is the ExternalSecret in the API server's answer; nil if a ClusterExternalSecret was patched.
	after *externalsecret.ExternalSecret
	err   error
}

// newPatch returns the patch of a target. The same event and repeat always result in the same annotations, except for annotationSyncedFrom. The
// only precondition of the patch is the UID.
func newPatch(to target, syncs []*pendingSync) (patch, error) {
	s := syncs[0]
	// Use the trace context of the change, not of one of our own spans, which would differ with each attempt.
	parent := s.change.Trace.Parent
	annotations := map[string]any{
		externalsecret.AnnotationForceSync: externalsecret.ForceSync{Event: s.change.ID(), Repeat: s.repeat, Traceparent: parent}.String(),
		events.AnnotationCause:             s.change.ID(),
		events.AnnotationTraceparent:       nil,
	}
	if parent != "" {
		annotations[events.AnnotationTraceparent] = parent
	}
	if !to.isCluster() {
		annotations[annotationSyncedFrom] = s.seen.SyncedVersion
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": to.uid, "annotations": annotations}})
	if err != nil {
		return patch{}, fmt.Errorf("encoding the patch of %s %s: %w", to.resource.Resource, to.name, err)
	}
	return patch{target: to, syncs: syncs, body: body}, nil
}
