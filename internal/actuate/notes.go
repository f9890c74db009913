package actuate

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// notes makes and sends the patches that belong to no pending change and roll nothing: they complete or correct a record, or note what a workload
// waits for. The parts that do so embed it.
type notes struct {
	*reporter
	dryRun   bool
	kinds    workload.Kinds
	index    *inventory.Index
	patcher  *patcher
	debounce *debounce
}

// note returns the patch that writes on a workload. What says for the log what that is. Finish, which may be nil, is called with the result, which is
// counted, and logged if the patch has failed. If no patch can be made, it logs that and returns nil.
func (n notes) note(ctx context.Context, w *workload.Workload, what string, write workload.Write, finish func(context.Context, patchResult)) *task {
	k, known := n.kinds.Named(w.ID.Kind)
	if !known {
		return nil
	}
	patch, err := k.Patch(w, write)
	if err != nil {
		n.log.ErrorContext(ctx, "cannot make a patch of the record", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
		return nil
	}
	return &task{
		kind: k, workload: w, patch: patch, pending: newPending(w.Key(), n.now()), span: trace.SpanFromContext(ctx),
		finish: func(ctx context.Context, result patchResult) {
			n.count(result.task.context(ctx), result, what)
			if finish != nil {
				finish(ctx, result)
			}
		},
	}
}

// count counts the result of a patch, and logs that it has failed, unless somebody has changed the workload meanwhile. No roll is late because of one
// in the background, so that is no failed patch.
func (n notes) count(ctx context.Context, result patchResult, what string) {
	id := result.task.workload.ID
	switch {
	case result.err == nil:
		n.metrics.patched(ctx, id, false)
	case !kube.HasChanged(result.err):
		if !result.task.background {
			n.metrics.patchFailed(ctx, id.Kind)
		}
		n.log.WarnContext(ctx, "writing on a workload failed; retrying later", "what", what, "workload", id.String(), "namespace", id.Namespace,
			"err", result.err)
	}
}

// send sends the patch that writes on a workload, if one can be made: see note.
func (n notes) send(ctx context.Context, w *workload.Workload, what string, write workload.Write, finish func(context.Context, patchResult)) {
	if note := n.note(ctx, w, what, write, finish); note != nil {
		n.patcher.start(ctx, note)
	}
}
