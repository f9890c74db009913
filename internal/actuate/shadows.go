package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// shadowRetry is how long after an attempt to restore a workload the next one is made. The API server carries out no deletion that was sent so long
// ago: it gives up after 34 seconds.
const shadowRetry = time.Minute

// shadow is a workload that stands for one that was deleted to be created again, by an actuator that ended before it did so. It says when to restore
// that.
type shadow struct {
	due time.Time
	// tried is the UID of the one with which that was tried already.
	tried string
}

// reviewShadow looks at a workload that has changed or gone, and may stand for another one.
func (o *rollouts) reviewShadow(key workload.Key) {
	w := o.index.Get(key)
	if o.options.DryRun || w == nil || w.StandsFor == (workload.Key{}) {
		delete(o.shadows, key)
		return
	}
	// An actuator that does not lead any more may still be creating the workload again for as long as one patch takes, and relies on what it kept.
	// Each of its attempts keeps it again.
	left, known := o.shadows[key]
	if taken := w.Created.Add(kube.PatchTimeout); !known || taken.After(left.due) {
		left.due = taken
		o.shadows[key] = left
	}
}

// restore restores the workloads that nobody is creating again, or is about to.
func (o *rollouts) restore(ctx context.Context) {
	for key, left := range o.shadows {
		w := o.index.Get(key)
		k, known := o.kinds.Named(key.Kind)
		if w == nil || !known || o.now().Before(left.due) || o.patcher.busy(w.StandsFor) || o.debounce.byKey[w.StandsFor] != nil ||
			!o.patcher.hasRoom(key.Namespace) {
			continue
		}
		o.shadows[key] = shadow{due: o.now().Add(shadowRetry), tried: w.ID.UID}
		o.patcher.start(ctx, &task{
			kind: k, workload: w, patch: k.Restore(w, left.tried == w.ID.UID), restores: w.StandsFor,
			span: trace.SpanFromContext(ctx), finish: o.finishRestore,
		})
	}
}

// finishRestore takes the result of a patch that restores a workload.
func (o *rollouts) finishRestore(ctx context.Context, result patchResult) {
	id, of := result.task.workload.ID, result.task.workload.StandsFor
	switch {
	case result.err == nil && result.after.Revision == result.task.workload.Revision:
		o.log.InfoContext(ctx, "workload restored", "workload", of.Kind+"/"+of.Name, "namespace", of.Namespace)
		o.restored(ctx, result.after)
	case result.err == nil: // It was not deleted, or someone else has made one of the name.
	case !apierrors.IsNotFound(result.err):
		o.metrics.patchFailed(ctx, id.Kind)
		o.log.WarnContext(ctx, "restoring a workload failed; retrying", "workload", of.Kind+"/"+of.Name, "namespace", of.Namespace,
			"retry_in", shadowRetry, "err", result.err)
	}
}
