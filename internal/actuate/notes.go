package actuate

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/workload"
)

// notes makes the patches that belong to no pending change and roll nothing: they complete or correct a record, or note what a workload waits for.
type notes struct {
	kinds workload.Kinds
	log   *slog.Logger
	now   func() time.Time
}

// make returns the patch that writes on a workload; finish is called with its result. If no patch can be made, it logs that and returns nil.
func (n notes) make(ctx context.Context, w *workload.Workload, write workload.Write, finish func(context.Context, patchResult)) *roll {
	k, known := n.kinds.Named(w.ID.Kind)
	if !known {
		return nil
	}
	patch, err := k.Patch(w, write)
	if err != nil {
		n.log.ErrorContext(ctx, "cannot make a patch of the record", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
		return nil
	}
	return &roll{
		kind: k, workload: w, patch: patch, pending: newPending(w.Key(), n.now()), span: trace.SpanFromContext(ctx), finish: finish,
	}
}
