package actuate

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// notes makes and sends the patches that belong to no pending change and roll nothing: they complete or correct a record, or note what a workload
// waits for. The parts that do so embed it.
type notes struct {
	dryRun   bool
	kinds    workload.Kinds
	index    *inventory.Index
	patcher  *patcher
	debounce *debounce
	metrics  *metrics
	log      *slog.Logger
	now      func() time.Time
}

// note returns the patch that writes on a workload; finish is called with its result. If no patch can be made, it logs that and returns nil. A patch
// that succeeds is counted.
func (n notes) note(ctx context.Context, w *workload.Workload, write workload.Write, finish func(context.Context, patchResult)) *task {
	k, known := n.kinds.Named(w.ID.Kind)
	if !known {
		return nil
	}
	patch, err := k.Patch(w, write)
	if err != nil {
		n.log.ErrorContext(ctx, "cannot make a patch of the record", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
		return nil
	}
	counted := func(ctx context.Context, result patchResult) {
		if result.err == nil {
			n.metrics.patched(result.task.context(ctx), w.ID, false)
		}
		finish(ctx, result)
	}
	return &task{
		kind: k, workload: w, patch: patch, pending: newPending(w.Key(), n.now()), span: trace.SpanFromContext(ctx), finish: counted,
	}
}

// send sends the patch that writes on a workload, if one can be made: see note.
func (n notes) send(ctx context.Context, w *workload.Workload, write workload.Write, finish func(context.Context, patchResult)) {
	if note := n.note(ctx, w, write, finish); note != nil {
		n.patcher.start(ctx, note)
	}
}
