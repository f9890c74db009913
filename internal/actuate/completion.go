package actuate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
)

// finish handles the result of a patch: it follows the rollout, ends the changes, or schedules a retry.
func (d *dispatcher) finish(ctx context.Context, result patchResult) {
	r := result.task
	key := r.key()
	d.patcher.finished(r)
	d.orders.review(key)
	d.debounce.releaseFrom(key, plan.Busy)
	if result.unrecorded != nil {
		d.warnUnrecorded(ctx, r, result.unrecorded)
	}
	switch {
	case r.finish != nil:
		r.finish(ctx, result)
	case result.err != nil:
		d.failed(ctx, result)
	default:
		d.metrics.patched(ctx, r.workload.ID, r.rolls)
		if len(r.causes) > 0 {
			delete(d.denials, key)
			d.admission.rolled(r)
		}
		switch {
		case r.way.inPlace:
			d.reloaded(ctx, result)
		case r.rolls:
			for _, cause := range r.causes {
				d.metrics.rolledFor(cause.event.context(ctx), key.Kind, d.now().Sub(r.pending.waitedSince(cause)))
			}
			d.rollouts.started(ctx, result, d.outcomes.started(r.context(ctx), result))
		}
		for _, decision := range r.decisions {
			d.notes.release(ctx, r.workload, r.pending.changes[decision.Source], decision)
		}
	}
	d.rollouts.review(ctx, key) // The review was not possible while the patch was in flight.
}

// failed schedules another decision about the changes of a failed patch. The API server may have applied the patch nevertheless.
func (d *dispatcher) failed(ctx context.Context, result patchResult) {
	r := result.task
	if result.reloaded > 0 {
		r.pending.answered = answered{content: r.content, pods: result.reloaded}
	}
	switch rollCtx, err := r.context(ctx), result.err; {
	case errors.Is(err, errNotYet):
		d.again(r, err).InfoContext(rollCtx, "pods did not confirm the reload yet; asking them again")
	case errors.Is(err, errNotReloaded):
		if ctx.Err() == nil { // Otherwise, the next leader asks the pods again.
			r.pending.notReloaded = err.Error()
		}
		d.again(r, err).WarnContext(rollCtx, "pods did not confirm the reload; replacing them")
	case kube.HasChanged(err) && (r.attempts < maxChanged || r.workload.IsTriggered()):
		// Another client, such as another leader, has written the record since the decision, or an operator has not acted on the last roll yet.
		d.again(r, err).InfoContext(rollCtx, "patch does not fit the current state of the workload; deciding again")
	case isDenied(err) || errors.Is(err, errTerminating):
		d.denied(ctx, r, err)
	default:
		d.again(r, err).WarnContext(rollCtx, "patch failed; retrying")
		d.metrics.retried(ctx, r.workload.ID)
	}
	d.rollouts.doubt(r, kube.HasChanged(result.err))
}

// warnUnrecorded logs why nothing was recorded on a workload. A missing permission is logged once for each kind.
func (d *dispatcher) warnUnrecorded(ctx context.Context, r *task, err error) {
	switch {
	case !kube.IsMissingRight(err, "patch"):
		d.log.WarnContext(r.context(ctx), "job started, but not recorded on the workload", "workload", r.workload.ID.String(),
			"namespace", r.workload.ID.Namespace, "err", err)
	case !d.unrecorded[r.kind.Name]:
		d.unrecorded[r.kind.Name] = true
		d.log.WarnContext(ctx, "no permission to patch; nothing is recorded on the workloads", "resource", r.kind.Resource, "err", err)
	}
}

func (d *dispatcher) reloaded(ctx context.Context, result patchResult) {
	r, id := result.task, result.task.workload.ID
	outcome := d.outcomes.reloaded(r.context(ctx), result)
	d.metrics.ended(ctx, outcome)
	d.log.InfoContext(r.context(ctx), "pods answered the request to reload", "workload", id.String(), "namespace", id.Namespace,
		"cause", r.cause, "pods", result.reloaded)
	d.report(ctx, outcome)
}

// again schedules another decision about the changes of a failed patch, and returns a logger with the details of the attempt.
func (d *dispatcher) again(r *task, err error) *slog.Logger {
	return d.postpone(r, kube.NthDelay(kube.PatchBackoff(), r.attempts+1), err)
}

func (d *dispatcher) postpone(r *task, delay time.Duration, err error) *slog.Logger {
	d.debounce.retry(r.pending, delay)
	id := r.workload.ID
	return d.log.With("workload", id.String(), "namespace", id.Namespace, "attempt", r.attempts+1, "retry_in", delay, "err", err)
}

// denied schedules another attempt after the API server has refused a patch, or no patch could be made. It reports the refusal once; from then on, no
// other workload waits for this one.
func (d *dispatcher) denied(ctx context.Context, r *task, err error) {
	p, rolls, longest := r.pending, len(r.causes) > 0, maxDenied
	if !rolls {
		longest = maxDeniedRecord
	}
	if !maps.Equal(p.denied, r.content) { // The API server may accept a patch with other content.
		p.denied, p.denials = r.content, 0
	}
	p.denials++
	p.deniedAs = r.workload
	isTold := d.denials.isTold(r)
	p.refused = isTold || p.denials >= kube.MaxDenials
	log := d.postpone(r, kube.NthDelay(kube.DenialBackoff(longest), p.denials), err)
	switch rollCtx := r.context(ctx); {
	case rolls && p.refused && !isTold:
		log.ErrorContext(rollCtx, "patch denied; retrying until it is accepted")
		d.report(ctx, d.outcomes.denied(rollCtx, r, err))
		for _, c := range r.causes {
			d.denials.put(r.key(), c.change.Source.String(), c.change.ID())
		}
	case rolls && !p.refused || p.denials == 1:
		log.WarnContext(rollCtx, "patch failed; retrying")
	default:
		log.DebugContext(rollCtx, "patch still denied; retrying")
	}
	d.metrics.retried(ctx, r.workload.ID)
}
