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

// shadows restores workloads that were deleted to be created again, by an actuator that ended before it did so. What is left to do is known from
// the workloads that stand for them.
type shadows struct {
	notes
	rollouts *rollouts

	left map[workload.Key]leftShadow
}

// leftShadow is a workload that was left behind, and when to restore the one that it stands for.
type leftShadow struct {
	due time.Time
	// tried is the UID of the one with which that was tried already.
	tried string
}

// review looks at a workload that has changed or gone.
func (s *shadows) review(key workload.Key) {
	w := s.index.Get(key)
	if s.dryRun || w == nil || w.StandsFor == (workload.Key{}) {
		delete(s.left, key)
		return
	}
	// An actuator that does not lead any more may still be creating the workload again for as long as one patch takes, and relies on what it kept.
	// Each of its attempts keeps it again.
	left, known := s.left[key]
	if taken := w.Created.Add(kube.PatchTimeout); !known || taken.After(left.due) {
		left.due = taken
		s.left[key] = left
	}
}

// advance restores the workloads that nobody is creating again, or is about to.
func (s *shadows) advance(ctx context.Context) {
	for key, left := range s.left {
		w := s.index.Get(key)
		k, known := s.kinds.Named(key.Kind)
		if w == nil || !known || s.now().Before(left.due) || s.patcher.busy(w.StandsFor) || s.debounce.byKey[w.StandsFor] != nil ||
			!s.patcher.hasRoom(key.Namespace) {
			continue
		}
		s.left[key] = leftShadow{due: s.now().Add(shadowRetry), tried: w.ID.UID}
		s.patcher.start(ctx, &task{
			kind: k, workload: w, patch: k.Restore(w, left.tried == w.ID.UID), restores: w.StandsFor, pending: newPending(key, s.now()),
			span: trace.SpanFromContext(ctx), finish: s.finish,
		})
	}
}

// finish takes the result of a patch.
func (s *shadows) finish(ctx context.Context, result patchResult) {
	id, of := result.task.workload.ID, result.task.workload.StandsFor
	switch {
	case result.err == nil && result.after.Revision == result.task.workload.Revision:
		s.log.InfoContext(ctx, "workload restored", "workload", of.Kind+"/"+of.Name, "namespace", of.Namespace)
		s.rollouts.restored(ctx, result.after)
	case result.err == nil: // It was not deleted, or someone else has made one of the name.
	case !apierrors.IsNotFound(result.err):
		s.metrics.patchFailed(ctx, id.Kind)
		s.log.WarnContext(ctx, "restoring a workload failed; retrying", "workload", of.Kind+"/"+of.Name, "namespace", of.Namespace,
			"retry_in", shadowRetry, "err", result.err)
	}
}
