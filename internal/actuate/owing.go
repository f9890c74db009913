package actuate

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// owingRetry is how long after a patch that failed the next one of the workload is sent.
const owingRetry = time.Minute

// owing notes in the records of workloads that wait for long what they are to be rolled for, as far as the stream may forget it: an event that was
// read again is not in flight, and that of a deletion expires. The next leader asks for what is noted.
type owing struct {
	policy    plan.Policy
	kinds     workload.Kinds
	index     *index
	patcher   *patcher
	gathering *debounce
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time

	// retries has when patches that have failed may be sent again.
	retries map[workload.Key]time.Time
}

// resume asks for what earlier leaders have noted.
func (o *owing) resume(ask func(question)) {
	for _, w := range o.index.all() {
		for _, source := range w.Owed() {
			ask(question{workload: w.Key(), source: source, owed: true})
		}
	}
}

// advance notes what is not noted yet.
func (o *owing) advance(ctx context.Context) {
	maps.DeleteFunc(o.retries, func(key workload.Key, _ time.Time) bool { return o.gathering.byKey[key] == nil })
	for key, p := range o.gathering.byKey {
		w := o.index.get(key)
		if w == nil || !isLong(p.held) || o.patcher.busy(key) || o.now().Before(o.retries[key]) || !o.patcher.hasRoom(key.Namespace) {
			continue
		}
		k, known := o.kinds.Named(key.Kind)
		entries := o.entries(p, w)
		if !known || len(entries) == 0 {
			continue
		}
		o.retries[key] = o.now().Add(owingRetry)
		patch, err := k.Patch(w, workload.Write{Rolled: entries})
		if err != nil {
			o.log.ErrorContext(ctx, "no patch to note what a workload waits for", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
			continue
		}
		o.patcher.start(ctx, &roll{
			kind: k, workload: w, patch: patch, owes: true, pending: newPending(key, o.now()), span: trace.SpanFromContext(ctx),
		})
	}
}

// entries returns what is to be noted of a workload.
func (o *owing) entries(p *pending, w *workload.Workload) map[string]workload.RolledFor {
	entries := make(map[string]workload.RolledFor)
	for source, c := range p.changes {
		if !c.event.recalled && c.change.Verb != events.VerbDeleted {
			continue
		}
		decision := o.policy.Decide(w, c.change, p.past(c, o.now()))
		if action := decision.Reason.Action(); action != plan.Roll && action != plan.Hold {
			continue
		}
		if owed := workload.Owed(decision.Record); w.Rolled[source.String()] != owed {
			entries[source.String()] = owed
		}
	}
	return entries
}

// finish takes the result of a patch.
func (o *owing) finish(ctx context.Context, result patchResult) {
	id := result.roll.workload.ID
	switch {
	case result.err == nil:
		o.metrics.patched(ctx, id, false)
	case kube.HasChanged(result.err):
		delete(o.retries, result.roll.key()) // It is made anew of what the workload is now.
	default:
		o.metrics.patchFailed(ctx, id.Kind)
		o.log.WarnContext(ctx, "noting what a workload waits for failed; retrying", "workload", id.String(), "namespace", id.Namespace,
			"retry_in", owingRetry, "err", result.err)
	}
}

// isLong reports whether a workload that is held for a reason may wait for days.
func isLong(why plan.Reason) bool { return rests(why) || why == plan.PeerFailed || why == plan.Aborted }
