package actuate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
)

const (
	// maxChanged is how many times in a row a patch may find the workload changed since it was read before that counts as a failure. It takes about
	// half a minute, longer than the watch is ever late.
	maxChanged = 5
	// maxDenied is the longest time between two attempts of a patch that is refused, and maxDeniedRecord that of one that only records.
	maxDenied, maxDeniedRecord = 10 * time.Minute, 6 * time.Hour
)

// completion handles the results of patches: it follows rollouts, ends changes, or retries.
type completion struct {
	*reporter
	patcher  *patcher
	debounce *debounce
	pace     *pace
	rollouts *rollouts
	told     denials
	notes    *notes

	// unrecorded has the kinds for which it was logged that nothing can be recorded on them.
	unrecorded map[string]bool
}

// finish handles the result of a patch.
func (c *completion) finish(ctx context.Context, result patchResult) {
	r := result.task
	c.patcher.finished(r)
	c.debounce.releaseFrom(r.key(), plan.Busy, c.now())
	if result.unrecorded != nil {
		c.warn(ctx, r, result.unrecorded)
	}
	if result.reloaded > 0 && result.err != nil {
		r.pending.answered = answered{content: r.content, pods: result.reloaded}
	}
	switch rollCtx, err := r.context(ctx), result.err; {
	case r.finish != nil:
		r.finish(ctx, result)
	case err == nil:
		c.succeeded(ctx, result)
	case errors.Is(err, errNotYet):
		c.again(r, err).InfoContext(rollCtx, "pods did not confirm the reload yet; asking them again")
	case errors.Is(err, errNotReloaded):
		if ctx.Err() == nil { // Otherwise the next leader asks them again.
			r.pending.notReloaded = err.Error()
		}
		c.again(r, err).WarnContext(rollCtx, "pods did not confirm the reload; replacing them")
	case kube.HasChanged(err) && (r.attempts < maxChanged || r.workload.IsTriggered()):
		// Someone else has written the record since the decision, for example another leader in whose term the patch was sent or arrived, or the
		// operator has not acted on the last roll yet.
		c.again(r, err).InfoContext(rollCtx, "workload changed before its patch; deciding again")
	case isDenied(err) || errors.Is(err, errTerminating):
		c.denied(ctx, r, err)
	default:
		c.again(r, err).WarnContext(rollCtx, "patch failed; retrying")
		c.metrics.retried(ctx, r.workload.ID)
	}
	if result.err != nil && r.finish == nil {
		c.rollouts.doubt(r, kube.HasChanged(result.err))
	}
	c.rollouts.review(ctx, r.key())
}

// warn logs why nothing was recorded on a workload. If the reason is a missing permission to patch the kind, it does so once for each kind.
func (c *completion) warn(ctx context.Context, r *task, err error) {
	switch {
	case !kube.IsMissingRight(err, "patch"):
		c.log.WarnContext(r.context(ctx), "job started, but not recorded on the workload", "workload", r.workload.ID.String(),
			"namespace", r.workload.ID.Namespace, "err", err)
	case !c.unrecorded[r.kind.Name]:
		c.unrecorded[r.kind.Name] = true
		c.log.WarnContext(ctx, "no permission to patch; nothing is recorded on the workloads", "resource", r.kind.Resource, "err", err)
	}
}

func (c *completion) succeeded(ctx context.Context, result patchResult) {
	r := result.task
	c.metrics.patched(ctx, r.workload.ID, r.rolls)
	if len(r.causes) > 0 {
		delete(c.told, r.workload.Key())
		c.pace.rolled(r.workload, r.pending)
	}
	switch {
	case r.way.inPlace:
		c.reloaded(ctx, result)
	case r.rolls:
		for _, cause := range r.causes {
			c.metrics.rolledFor(cause.event.context(ctx), r.workload.ID.Kind, c.now().Sub(r.pending.waitedSince(cause)))
		}
		c.rollouts.started(ctx, result)
	}
	for _, decision := range r.decisions {
		c.notes.release(ctx, r.workload, r.pending.changes[decision.Source], decision)
	}
}

// reloaded reports that the pods have answered the request to reload. Whether they have reloaded is not known.
func (c *completion) reloaded(ctx context.Context, result patchResult) {
	r, id := result.task, result.task.workload.ID
	outcome := result.started
	pods := "pods"
	if result.reloaded == 1 {
		pods = "pod"
	}
	outcome.Message = fmt.Sprintf("%d %s answered the request to reload at %s for %s", result.reloaded, pods, r.workload.InPlace.Endpoint, r.cause)
	c.metrics.reloadedInPlace(ctx, id.Kind, outcome)
	c.log.InfoContext(r.context(ctx), "pods answered the request to reload", "workload", id.String(), "namespace", id.Namespace,
		"cause", r.cause, "pods", result.reloaded)
	c.report(ctx, outcome)
}

// again holds the changes of a patch for another decision, which is based on what is known by then. It returns what logs that.
func (c *completion) again(r *task, err error) *slog.Logger {
	return c.hold(r, backoff.Nth(kube.PatchBackoff(), r.attempts+1), err)
}

// hold holds the changes of a patch for another decision after a delay.
func (c *completion) hold(r *task, delay time.Duration, err error) *slog.Logger {
	c.debounce.retry(r.pending, c.now(), delay)
	id := r.workload.ID
	return c.log.With("workload", id.String(), "namespace", id.Namespace, "attempt", r.attempts+1, "retry_in", delay, "err", err)
}

// denied schedules another attempt after a patch that is refused or cannot be made. That may last for days, so it is told once, and nobody waits for
// the workload from then on.
func (c *completion) denied(ctx context.Context, r *task, err error) {
	p, rolls, longest := r.pending, len(r.causes) > 0, maxDenied
	if !rolls {
		longest = maxDeniedRecord
	}
	p.deny(r)
	isTold := c.told.isTold(r)
	p.refused = isTold || p.denials >= kube.MaxDenials
	log := c.hold(r, backoff.Nth(kube.DenialBackoff(longest), p.denials), err)
	switch rollCtx := r.context(ctx); {
	case rolls && p.refused && !isTold:
		log.ErrorContext(rollCtx, "patch denied; retrying until it is accepted")
		c.report(ctx, c.outcomes.denied(rollCtx, r, err))
		c.told.tell(r)
	case rolls && !p.refused || p.denials == 1:
		log.WarnContext(rollCtx, "patch failed; retrying")
	default:
		log.DebugContext(rollCtx, "patch still denied; retrying")
	}
	c.metrics.retried(ctx, r.workload.ID)
}
