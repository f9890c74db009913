package forcesync

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// annotationSyncedFrom is the annotation with the ExternalSecret's status.syncedResourceVersion at the time of the patch. The sync is done
// when the status has another version.
const annotationSyncedFrom = "keyturn.dev/synced-from"

// target is the object that is patched to sync ExternalSecrets. It is the ExternalSecret itself or, if a ClusterExternalSecret created it,
// that one, because the operator reverts patches of the ExternalSecrets of a ClusterExternalSecret.
type target struct {
	metav1.ObjectMeta
	resource schema.GroupVersionResource
}

// targetOf returns what to patch for an ExternalSecret. owner is the ClusterExternalSecret that created it, or nil.
func targetOf(es *externalsecret.ExternalSecret, owner *externalsecret.ClusterExternalSecret) target {
	if owner != nil {
		return target{owner.ObjectMeta, externalsecret.ClusterExternalSecrets}
	}
	return target{es.ObjectMeta, externalsecret.ExternalSecrets}
}

func (t target) isCluster() bool { return t.resource == externalsecret.ClusterExternalSecrets }

// asked reports whether the annotations already ask for a sync for an event. If so, it returns which repeat they ask for.
func (t target) asked(event string) (repeat int, ok bool) {
	forced, ok := externalsecret.ParseForceSync(t.Annotations[externalsecret.AnnotationForceSync])
	if !ok || forced.Event != event {
		return 0, false
	}
	return forced.Repeat, true
}

// syncedFrom returns the version before the sync that the annotations ask for. ok is false if they have none. Those of a
// ClusterExternalSecret never do, because it stands for several ExternalSecrets.
func (t target) syncedFrom() (version string, ok bool) {
	version, ok = t.Annotations[annotationSyncedFrom]
	return version, ok && !t.isCluster()
}

// patch is one merge patch, and the syncs that it is for. event is the event of their change.
type patch struct {
	target target
	syncs  []*pendingSync
	event  string
	body   []byte
}

// answer is the result of a patch.
type answer struct {
	patch
	// sent is when the patch was sent.
	sent time.Time
	// after is the ExternalSecret in the API server's answer; nil if a ClusterExternalSecret was patched.
	after *externalsecret.ExternalSecret
	err   error
}

// newPatch returns the patch of a target. The same event and repeat always result in the same annotations, except for annotationSyncedFrom. The
// only precondition of the patch is the UID.
func newPatch(to target, syncs []*pendingSync) patch {
	s := syncs[0]
	event := s.change.ID()
	// Use the trace context of the change, not of one of our own spans, which would differ with each attempt.
	parent := s.change.Trace.Parent
	annotations := map[string]any{
		externalsecret.AnnotationForceSync: externalsecret.ForceSync{Event: event, Repeat: s.repeat, Traceparent: parent}.String(),
		events.AnnotationCause:             event,
		events.AnnotationTraceparent:       nil,
	}
	if parent != "" {
		annotations[events.AnnotationTraceparent] = parent
	}
	if !to.isCluster() {
		annotations[annotationSyncedFrom] = s.seen.SyncedVersion
	}
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": to.UID, "annotations": annotations}}) // Texts can always be encoded.
	return patch{target: to, syncs: syncs, event: event, body: body}
}

// send sends a patch on a goroutine of its own, which puts the answer into the index. The request is completed even if ctx ends in the meantime.
func (y *Syncer) send(ctx context.Context, what patch) {
	ctx = what.syncs[0].context(context.WithoutCancel(ctx))
	y.sending.Go(func() { y.index.answer(y.patch(ctx, what)) })
}

// patch sends a patch and waits for the answer.
func (y *Syncer) patch(ctx context.Context, what patch) answer {
	spanCtx, span := y.host.Tracer.Start(ctx, "force-sync externalsecret", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(patchAttributes(what)...))
	defer span.End()
	callCtx, cancel := context.WithTimeout(spanCtx, kube.PatchTimeout)
	defer cancel()
	to, result := what.target, answer{patch: what, sent: y.host.Now()}
	obj, err := y.host.Client.Resource(to.resource).Namespace(to.Namespace).Patch(callCtx, to.Name,
		types.MergePatchType, what.body, metav1.PatchOptions{FieldManager: workload.FieldManager})
	switch {
	case err != nil:
		result.err = fmt.Errorf("patching %s %s: %w", to.resource.Resource, to.Name, err)
		span.SetStatus(codes.Error, "not patched")
	case !to.isCluster():
		result.after = externalsecret.Read(obj)
	}
	return result
}

func patchAttributes(what patch) []attribute.KeyValue {
	id := identify(what.syncs[0].seen)
	if what.target.isCluster() {
		id = events.Workload{Kind: clusterKind, Name: what.target.Name}
	}
	return append(identityAttributes(id), attribute.Int("keyturn.externalsecrets", len(what.syncs)))
}
