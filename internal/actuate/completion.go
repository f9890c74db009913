package actuate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/kube"
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
	patcher   *patcher
	debounce  *debounce
	pace      *pace
	rollouts  *rollouts
	told      denials
	concluder *concluder
	reporter  *reporter
	outcomes  outcomes
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time

	// unrecorded has the kinds for which it was logged that nothing can be recorded on them.
	unrecorded map[string]bool
}

// finish handles the result of a patch.
func (c *completion) finish(ctx context.Context, result patchResult) {
	r := result.task
	c.patcher.finished(r)
	c.debounce.patched(r.key(), c.now())
	if result.unrecorded != nil {
		c.warn(ctx, r, result.unrecorded)
	}
	if result.reloaded > 0 && result.err != nil {
		r.pending.answered = answered{content: r.content, pods: result.reloaded}
	}
	switch {
	case r.finish != nil:
		r.finish(ctx, result)
	case result.err == nil:
		c.succeeded(ctx, result)
	case errors.Is(result.err, errNotYet):
		c.reloadAgain(ctx, r, result.err)
	case errors.Is(result.err, errNotReloaded):
		c.rollInstead(ctx, r, result.err)
	case kube.HasChanged(result.err) && (r.attempts < maxChanged || r.workload.IsTriggered()):
		c.decideAgain(ctx, r)
	case isDenied(result.err) || errors.Is(result.err, errTerminating):
		c.denied(ctx, r, result.err)
	default:
		c.retry(ctx, r, result.err)
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
	for _, decision := range r.decisions {
		c.metrics.decided(ctx, decision.Reason)
	}
	switch {
	case r.way.inPlace:
		c.reloaded(ctx, result)
	case r.rolls:
		for _, cause := range r.causes {
			c.metrics.rolledFor(cause.event.context(ctx), r.workload.ID, c.now().Sub(r.pending.waitedSince(cause)))
		}
		c.rollouts.started(ctx, result)
	}
	c.concluder.releaseTask(ctx, r)
	if !r.rolls {
		c.debounce.releaseHeld(r.key(), c.now())
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
	c.reporter.report(ctx, outcome)
}

// rollInstead replaces pods that could not be asked to reload. If this leader ends first, the next one asks them again.
func (c *completion) rollInstead(ctx context.Context, r *task, err error) {
	if ctx.Err() == nil {
		r.pending.notReloaded = err.Error()
	}
	delay := c.again(r)
	c.log.WarnContext(r.context(ctx), "pods did not confirm the reload; replacing them", "workload", r.workload.ID.String(),
		"namespace", r.workload.ID.Namespace, "retry_in", delay, "err", err)
}

// reloadAgain schedules another attempt to ask the pods to reload.
func (c *completion) reloadAgain(ctx context.Context, r *task, err error) {
	delay := c.again(r)
	c.log.InfoContext(r.context(ctx), "pods did not confirm the reload yet; asking them again", "workload", r.workload.ID.String(),
		"namespace", r.workload.ID.Namespace, "attempt", r.attempts+1, "retry_in", delay, "err", err)
}

// retry schedules another attempt after a failed patch. It is based on what is known by then.
func (c *completion) retry(ctx context.Context, r *task, err error) {
	delay := c.again(r)
	c.log.WarnContext(r.context(ctx), "patch failed; retrying", "workload", r.workload.ID.String(),
		"namespace", r.workload.ID.Namespace, "attempt", r.attempts+1, "retry_in", delay, "err", err)
	c.metrics.retried(ctx, r.workload.ID)
}

// decideAgain makes a workload be decided again whose record someone else has written since the decision, for example another leader in whose term
// the patch was sent or arrived, or whose operator has not acted on the last roll yet.
func (c *completion) decideAgain(ctx context.Context, r *task) {
	delay := c.again(r)
	c.log.InfoContext(r.context(ctx), "workload changed before its patch; deciding again", "workload", r.workload.ID.String(),
		"namespace", r.workload.ID.Namespace, "retry_in", delay)
}

// again holds the changes of a patch for another decision, and returns for how long.
func (c *completion) again(r *task) time.Duration {
	delay := backoff.Nth(kube.PatchBackoff(), r.attempts+1)
	c.hold(r, delay)
	return delay
}

// hold holds the changes of a patch for another decision after a delay.
func (c *completion) hold(r *task, delay time.Duration) {
	c.rollouts.doubt(r)
	c.debounce.retry(r.pending, c.now(), delay)
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
	delay := backoff.Nth(kube.DenialBackoff(longest), p.denials)
	id := r.workload.ID
	log := c.log.With("workload", id.String(), "namespace", id.Namespace, "attempt", r.attempts+1, "retry_in", delay, "err", err)
	switch rollCtx := r.context(ctx); {
	case rolls && p.refused && !isTold:
		log.ErrorContext(rollCtx, "patch denied; retrying until it is accepted")
		c.reporter.report(ctx, c.outcomes.denied(rollCtx, r, err))
		c.told.tell(r)
	case rolls && !p.refused || p.denials == 1:
		log.WarnContext(rollCtx, "patch failed; retrying")
	default:
		log.DebugContext(rollCtx, "patch still denied; retrying")
	}
	c.metrics.retried(ctx, r.workload.ID)
	c.hold(r, delay)
	if p.refused {
		c.debounce.releaseHeld(r.key(), c.now())
	}
}
