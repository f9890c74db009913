package sources

import (
	"context"
	"errors"
	"log/slog"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/health"
)

// worker reconciles pending sources, one at a time.
type worker struct {
	pending   *pendingSources
	reconcile func(ctx context.Context, source events.Source, entry *queueEntry) error
	progress  *health.Progress
	metrics   *metrics
	log       *slog.Logger
}

// run works until the queue is shut down. When ctx ends, it finishes the current source; publishTimeout bounds that.
func (w *worker) run(ctx context.Context) {
	for {
		source, entry, ok := w.pending.take()
		if !ok {
			return
		}
		w.progress.Busy()
		err := w.reconcile(context.WithoutCancel(ctx), source, &entry)
		w.finish(ctx, source, entry, err)
		w.progress.Idle()
	}
}

// finish ends the work on a source.
func (w *worker) finish(ctx context.Context, source events.Source, entry queueEntry, err error) {
	turn, waits := errors.AsType[*turnError](err)
	_, refused := errors.AsType[*events.RejectError](err)
	switch {
	case err == nil:
		w.pending.done(source)
	case waits:
		w.pending.wait(source, entry, turn.after)
	case errors.Is(err, errUndecided):
		w.pending.wait(source, entry, doubtInterval)
	case refused:
		w.metrics.publishError(ctx)
		w.log.ErrorContext(ctx, "an event is not valid; dropping it", "source", source.String(), "namespace", source.Namespace, "err", err)
		w.pending.drop(source, entry)
	default:
		w.metrics.publishError(ctx)
		w.log.ErrorContext(ctx, "cannot publish an event; retrying", "source", source.String(), "namespace", source.Namespace, "err", err)
		w.pending.retry(source, entry)
	}
}
