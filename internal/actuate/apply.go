package actuate

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// retryFirst and retryMost bound the wait between two tries. It doubles from one to the other.
	retryFirst = time.Second
	retryMost  = time.Minute
)

// patchResult is what became of a patch.
type patchResult struct {
	roll *roll
	// after is the workload as the API server answered.
	after *workload.Workload
	// started is the outcome of it. Set where the patch rolls.
	started events.Outcome
	err     error
	// denied says that the API server understood the patch and refuses it.
	denied bool
}

// patcher makes patches.
type patcher struct {
	options Options
	index   *index
}

// apply sends the patch of a roll. What was begun is finished, also when the context ends meanwhile.
func (a *patcher) apply(ctx context.Context, r *roll) patchResult {
	ctx = context.WithoutCancel(ctx)
	spanCtx, span := a.options.Tracer.Start(ctx, "patch "+r.kind.Name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(workloadAttributes(r.workload.ID)...), trace.WithAttributes(requestAttributes(r)...))
	defer span.End()
	result := patchResult{roll: r}

	callCtx, cancel := context.WithTimeout(spanCtx, kube.PatchTimeout)
	defer cancel()
	obj, err := r.kind.Objects(workload.Clients{Typed: a.options.Client}, r.workload.ID.Namespace).Patch(callCtx, r.workload.ID.Name, r.patch)
	if err != nil {
		result.err = fmt.Errorf("patching %s in namespace %s: %w", r.workload.ID, r.workload.ID.Namespace, err)
		// Not found, or a conflict, which can only be about the UID: the index does not know yet that the workload is gone, or
		// that another has its name. The next try is of what it knows by then.
		result.denied = kube.IsDenied(err)
		failRequest(span, err)
		return result
	}
	after, ok := workload.Read(r.kind, obj, a.options.RollAll)
	if !ok {
		result.err = fmt.Errorf("patching %s: the answer is no %s", r.workload.ID, r.kind.Title)
		return result
	}
	a.index.answer(after, r.rolls)
	result.after = after
	if r.rolls {
		result.started = a.options.started(ctx, r, after)
	}
	return result
}

// retry has a patch that did not succeed made again, of what is known by then.
func (e *engine) retry(ctx context.Context, r *roll, err error) {
	p := r.pending
	delay := min(retryFirst<<min(p.attempts, 10), retryMost)
	p.attempts++
	e.log.WarnContext(r.ctx, "a workload could not be patched; it will be tried again", "workload", r.workload.ID.String(),
		"namespace", r.workload.ID.Namespace, "attempt", p.attempts, "retry", delay, "err", err)
	e.metrics.notPatched(ctx, r)
	e.metrics.reloader.retried(ctx)
	if later := e.queue.byKey[p.key]; later != nil {
		later.merge(p)
		p = later
	}
	p.doubt()
	p.held = plan.None
	e.queue.schedule(p, e.options.Now().Add(delay))
}

// giveUp ends the claims on a workload that the API server refuses to have patched. The events go to the dead letters,
// once the other workloads are done with them.
func (e *engine) giveUp(ctx context.Context, r *roll, err error) {
	p := r.pending
	e.log.ErrorContext(r.ctx, "a workload cannot be patched; the event goes to the dead letters", "workload", r.workload.ID.String(),
		"namespace", r.workload.ID.Namespace, "attempts", p.attempts+1, "err", err)
	e.metrics.notPatched(ctx, r)
	outcome := e.outcome(r.ctx, events.VerbFailed, r.workload, p, plan.None)
	outcome.Reason, outcome.Message = events.ReasonPatchDenied, err.Error()
	e.reporter.report(ctx, outcome)
	for source, c := range p.claims {
		// What comes next must not be compared with what this workload never got.
		delete(e.known, source)
		for _, t := range c.tickets {
			t.err = &events.RejectError{Reason: events.ReasonPatchDenied, Err: err}
		}
	}
	e.releaseAll(ctx, r)
	e.releaseHeld()
}
