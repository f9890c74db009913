package actuate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// annotationSyncedFrom, on an ExternalSecret, is its status.syncedResourceVersion when it was asked to sync: it is synced
// when that is another.
const annotationSyncedFrom = "keyturn.dev/synced-from"

// syncTarget is the object whose annotation has ExternalSecrets synced: the ExternalSecret, or the ClusterExternalSecret
// that made it and others, since that one undoes what others write on them.
type syncTarget struct {
	resource    schema.GroupVersionResource
	namespace   string
	name        string
	uid         types.UID
	annotations map[string]string
}

func (y *syncer) target(es *externalsecret.ExternalSecret) syncTarget {
	if owner := y.index.owner(es); owner != nil {
		return syncTarget{externalsecret.ClusterExternalSecrets, "", owner.Name, owner.UID, owner.Annotations}
	}
	return syncTarget{externalsecret.ExternalSecrets, es.Namespace, es.Name, es.UID, es.Annotations}
}

func (t syncTarget) isCluster() bool { return t.resource == externalsecret.ClusterExternalSecrets }

// askedFor tells whether the annotations ask for a sync for the event, and how often that was repeated.
func (t syncTarget) askedFor(event string) (repeat int, ok bool) {
	forced, ok := externalsecret.ParseForceSync(t.annotations[externalsecret.AnnotationForceSync])
	if !ok || forced.Event != event {
		return 0, false
	}
	return forced.Repeat, true
}

// syncAsk is one patch, and the syncs that it is for.
type syncAsk struct {
	target syncTarget
	syncs  []*forcedSync
	body   []byte
}

// syncAnswer is what became of it.
type syncAnswer struct {
	ask syncAsk
	// at is when the patch was sent.
	at time.Time
	// after is the ExternalSecret as the API server answered. Nil where it is a ClusterExternalSecret that was patched.
	after *externalsecret.ExternalSecret
	err   error
}

// newSyncAsk makes the patch. It is a merge patch, and nothing is asked of the object but that it is still the same.
func newSyncAsk(target syncTarget, syncs []*forcedSync) (syncAsk, error) {
	s := syncs[0]
	// Not the context of a span of ours, which would be another at each try, but that of the change.
	parent := s.change.Trace.Parent
	annotations := map[string]any{
		externalsecret.AnnotationForceSync: externalsecret.ForceSync{Event: s.change.ID(), Repeat: s.repeat, Traceparent: parent}.String(),
		workload.AnnotationCause:           s.change.ID(),
		workload.AnnotationTraceparent:     nil,
	}
	if parent != "" {
		annotations[workload.AnnotationTraceparent] = parent
	}
	if !target.isCluster() {
		annotations[annotationSyncedFrom] = s.seen.SyncedVersion
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": target.uid, "annotations": annotations}})
	if err != nil {
		return syncAsk{}, fmt.Errorf("writing the patch of %s %s: %w", target.resource.Resource, target.name, err)
	}
	return syncAsk{target: target, syncs: syncs, body: body}, nil
}

// send patches. What was begun is finished, also when the context ends meanwhile.
func (y *syncer) send(ctx context.Context, ask syncAsk) {
	options := y.engine.options
	ctx = context.WithoutCancel(ctx)
	spanCtx, span := options.Tracer.Start(ctx, "force-sync externalsecret", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(syncTargetAttributes(ask)...))
	defer span.End()
	callCtx, cancel := context.WithTimeout(spanCtx, kube.PatchTimeout)
	defer cancel()
	answer := syncAnswer{ask: ask, at: options.Now()}
	obj, err := options.Dynamic.Resource(ask.target.resource).Namespace(ask.target.namespace).Patch(callCtx, ask.target.name,
		types.MergePatchType, ask.body, metav1.PatchOptions{FieldManager: workload.FieldManager})
	switch {
	case err != nil:
		answer.err = fmt.Errorf("patching %s %s: %w", ask.target.resource.Resource, ask.target.name, err)
		span.SetStatus(codes.Error, "not patched")
	case !ask.target.isCluster():
		answer.after = externalsecret.Read(obj)
		y.index.answer(answer.after)
	}
	y.inbox.answer(answer)
}
