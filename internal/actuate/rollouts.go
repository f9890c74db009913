package actuate

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// rollouts reviews workloads that have changed: it reports the rollouts that have ended, and releases the workloads that they held.
type rollouts struct {
	// private says that leaders do not share a stream.
	private bool
	// dryRun publishes nothing about rollouts that the actuator has not started.
	dryRun    bool
	index     *index
	following *following
	peers     *failedPeers
	canaries  *canaries
	reverts   *reverts
	patcher   *patcher
	gathering *debounce
	problems  *problems
	teller    *teller
	outcomes  outcomes
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time
}

// started follows a rollout that a patch of this actuator has started.
func (o *rollouts) started(ctx context.Context, result patchResult) {
	if superseded, ok := o.following.supersede(result.started); ok {
		o.ended(ctx, superseded)
	}
	r := o.following.begin(ctx, result.started)
	r.rolled, r.before = result.after, result.roll.workload.Rolled
	for _, c := range result.roll.causes {
		r.changed = append(r.changed, c.change.Time)
	}
	id := result.after.ID
	o.log.InfoContext(r.context(ctx), "workload rolled", "workload", id.String(), "namespace", id.Namespace,
		"cause", result.roll.cause, "reason", result.started.Reason, "revision", result.started.Revision)
	if result.after.ID.UID != result.roll.workload.ID.UID {
		// It was made anew. The index may still have the one before, or none.
		o.ended(ctx, o.following.end(result.after.Key(), events.VerbCompleted, reasonRolledOut, result.after.Progress.Message))
		return
	}
	o.review(ctx, result.after.Key())
}

// adopt reports and follows a rollout that an earlier actuator started, or a patch whose answer was lost, if no outcome says so yet.
func (o *rollouts) adopt(ctx context.Context, w *workload.Workload, started events.Outcome) {
	if !o.following.unreported(w) {
		return
	}
	if superseded, ok := o.following.supersede(started); ok {
		o.ended(ctx, superseded)
	}
	o.teller.report(ctx, started)
	o.following.begin(ctx, started)
	o.review(ctx, w.Key())
}

// resume follows the rollouts that were in progress when the last leader stopped: those whose last outcome on the stream says that
// they started.
func (o *rollouts) resume(ctx context.Context, stream *resumer) {
	for _, w := range o.index.all() {
		o.problems.report(ctx, w)
	}
	o.peers.resume()
	complete := stream.outcomes(ctx, func(outcome events.Outcome) {
		o.index.keepStart(outcome)
		o.following.resume(ctx, outcome)
		o.peers.resumeOutcome(outcome)
		o.reverts.resumeOutcome(ctx, outcome)
	})
	o.reverts.resume()
	for key, r := range o.following.rollouts {
		r.changed = stream.changed(ctx, r.started)
		o.review(ctx, key)
	}
	if complete && !o.dryRun {
		o.find(ctx, stream)
	}
}

// find reports the rollouts that no outcome is about, because the actuator that started them was killed before it published one, and follows
// them to their end. The outcome of an older one may have expired: what the workload does then is not its rollout.
func (o *rollouts) find(ctx context.Context, stream *resumer) {
	began := stream.began(ctx)
	for _, w := range o.index.all() {
		young := w.AtRecord() && o.now().Sub(w.Patched) < events.OutcomeTTL
		if !young || !o.following.unreported(w) || w.StandsFor != (workload.Key{}) {
			continue
		}
		if w.Progress.State != workload.Complete || o.isUntold(w, began) {
			o.adopt(ctx, w, o.outcomes.found(w))
		}
	}
}

// isUntold reports whether no outcome of a complete rollout was ever published. Otherwise the stream would have one, unless it was lost since the
// rollout with the outcomes of all workloads. It was not if it has an earlier outcome of the workload, or began before the rollout. Whether the
// event is delivered again says nothing: a later one may supersede it first.
func (o *rollouts) isUntold(w *workload.Workload, began time.Time) bool {
	if o.private {
		return false // Who led before has told it elsewhere.
	}
	return o.following.reported[w.Key()] != "" || !began.IsZero() && w.Patched.After(began.Add(clockMargin))
}

// review looks at a workload that has changed or gone.
func (o *rollouts) review(ctx context.Context, key workload.Key) {
	w := o.index.get(key)
	if untested, recovered := o.peers.recovered(key, w); recovered {
		o.canaries.require(untested)
		o.gathering.releaseHeld(o.now())
	}
	if w != nil {
		o.problems.report(ctx, w)
	} else {
		o.problems.forget(key)
	}
	if o.patcher.busy(key) {
		return // Whose revision it has is known when the patch is finished.
	}
	if end, ok := o.following.review(key, w); ok {
		o.ended(ctx, end)
	}
}

// reviewOverdue ends the rollouts that take too long.
func (o *rollouts) reviewOverdue(ctx context.Context) {
	// A slot may be free without an end that was seen: a Deployment that was paused needs none.
	o.gathering.releaseHeld(o.now())
	for _, end := range o.following.overdue() {
		o.ended(ctx, end)
	}
}

// ended reports a rollout that has ended.
func (o *rollouts) ended(ctx context.Context, end ending) {
	ctx = end.rollout.context(ctx)
	outcome := end.outcome
	if failsPeers(outcome) {
		o.peers.add(workload.KeyOf(outcome.Workload))
	}
	if outcome.Reason == reasonReverted {
		o.reverts.add(end.rollout.span, outcome, end.rollout.before)
	}
	o.metrics.ended(ctx, outcome.Workload.Kind, outcome, end.took)
	if outcome.Verb == events.VerbCompleted {
		for _, at := range end.rollout.changed {
			o.metrics.ready(ctx, outcome.Workload.Kind, o.now().Sub(at))
		}
	}
	o.log.InfoContext(ctx, "rollout ended", "workload", outcome.Workload.String(), "namespace", outcome.Workload.Namespace,
		"verb", string(outcome.Verb), "reason", outcome.Reason, "seconds", end.took.Round(time.Millisecond).Seconds())
	o.teller.report(ctx, outcome)
	o.gathering.releaseHeld(o.now())
}
