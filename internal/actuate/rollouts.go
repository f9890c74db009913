package actuate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/inventory"
	"github.com/keyturn/keyturn/internal/workload"
)

// rollouts reviews workloads that have changed: it reports the rollouts that have ended, and releases the workloads that they held.
type rollouts struct {
	// private says that leaders do not share a stream.
	private bool
	// dryRun publishes nothing about rollouts that the actuator has not started.
	dryRun    bool
	index     *inventory.Index
	state     *state
	following *following
	peers     *failedPeers
	canaries  *canaries
	reverts   *reverts
	patcher   *patcher
	debounce  *debounce
	problems  *problems
	reporter  *reporter
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
	r.own, r.rolled, r.before = true, result.after, result.task.workload.Rolled
	for _, c := range result.task.causes {
		r.changed = append(r.changed, result.task.pending.waitedSince(c))
	}
	id := result.after.ID
	o.log.InfoContext(r.context(ctx), "workload rolled", "workload", id.String(), "namespace", id.Namespace,
		"cause", result.task.cause, "reason", result.started.Reason, "revision", result.started.Revision)
	if result.after.ID.UID != result.task.workload.ID.UID {
		// It was recreated. The index may still have the one before, or none.
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
	o.begin(ctx, started)
	o.review(ctx, w.Key())
}

// restored reports a rollout that ended when the workload was created again from what an earlier attempt has kept, if no outcome says so yet. The
// index may still have the earlier object, or none.
func (o *rollouts) restored(ctx context.Context, w *workload.Workload) {
	if !w.AtRecord() || !o.following.unreported(w) {
		return
	}
	started := o.outcomes.found(w)
	started.Message = "recreated from the manifest that an earlier attempt had saved"
	o.begin(ctx, started)
	o.ended(ctx, o.following.end(w.Key(), events.VerbCompleted, reasonRolledOut, w.Progress.Message))
}

// begin reports and follows a rollout.
func (o *rollouts) begin(ctx context.Context, started events.Outcome) {
	if superseded, ok := o.following.supersede(started); ok {
		o.ended(ctx, superseded)
	}
	o.reporter.report(ctx, started)
	o.following.begin(ctx, started)
}

// resume follows the rollouts that were in progress when the last leader stopped: those whose last outcome on the stream says that
// they started. It returns false if the context ended before the outcomes were known.
func (o *rollouts) resume(ctx context.Context, stream *resumer) bool {
	for _, w := range o.index.All() {
		o.problems.report(ctx, w)
	}
	o.peers.resume()
	isKnown := stream.outcomes(ctx, o.concerns, func(outcome events.Outcome) {
		o.index.KeepStart(outcome)
		o.following.resume(ctx, outcome)
		o.peers.resumeOutcome(outcome)
		o.reverts.resumeOutcome(ctx, outcome)
	})
	if !isKnown {
		return false
	}
	o.reverts.resume()
	for _, r := range o.following.rollouts {
		r.changed = o.changed(r.started)
	}
	o.reviewResumed(ctx)
	if !o.dryRun {
		o.find(ctx, stream)
	}
	return true
}

// changed returns when the watcher saw the changes that a rollout is for, as far as they are the last ones of their sources. Only metrics need that.
func (o *rollouts) changed(started events.Outcome) []time.Time {
	var times []time.Time
	for _, cause := range started.Sources {
		source, err := events.ParseSource(cause.Source)
		if err != nil {
			continue
		}
		change, last := o.state.Change(workload.SourceNamed(source.Kind, started.Workload.Namespace, source.Name))
		if last != nil && change.ID() == cause.Event {
			times = append(times, change.Time)
		}
	}
	return times
}

// concerns reports whether the last outcome of a workload matters to a new leader. The stream also has those of workloads that are gone, which may be
// many more than there are.
func (o *rollouts) concerns(last events.Outcome) bool {
	return last.Verb == events.VerbStarted || o.index.Get(workload.KeyOf(last.Workload)) != nil
}

// reviewResumed looks at the workloads that the last leader has followed, or held others for: nothing may change at them any more.
func (o *rollouts) reviewResumed(ctx context.Context) {
	for key := range o.following.rollouts {
		o.review(ctx, key)
	}
	for key := range o.peers.keys {
		o.review(ctx, key)
	}
}

// find reports the rollouts without an outcome, because the actuator that started them was killed before it published one, and follows them to
// their end. The outcome of a rollout of the day before may have expired: then the current state of the workload is not that of the rollout.
func (o *rollouts) find(ctx context.Context, stream *resumer) {
	began := sync.OnceValue(func() time.Time { return stream.began(ctx) })
	for _, w := range o.index.All() {
		young := w.AtRecord() && o.now().Sub(w.Patched) < events.CrowdedOutcomeTTL
		if !young || !o.following.unreported(w) || w.Deaf {
			continue // Such a Job has the record of another one, whose rollout is reported.
		}
		if w.Progress.State != workload.Complete || o.isNeverReported(w, began) {
			o.adopt(ctx, w, o.outcomes.found(w))
		}
	}
}

// isNeverReported reports whether no outcome of a complete rollout was ever published. Otherwise the stream would have one, unless it was lost since
// the rollout with the outcomes of all workloads. It was not if it has an earlier outcome of the workload, or began before the rollout. Whether the
// event is delivered again says nothing: a later one may supersede it first. A later outcome replaces that of the rollout, if the patch for the next
// change was refused or if somebody has undone the next rollout: the outcomes of a workload are published in order.
func (o *rollouts) isNeverReported(w *workload.Workload, began func() time.Time) bool {
	switch {
	case o.private:
		return false // The previous leader has published it on a stream of its own.
	case !o.following.reported[w.Key()].at.IsZero():
		return w.Patched.After(o.following.reported[w.Key()].at.Add(clockMargin))
	}
	at := began()
	// The outcome of an earlier one may have expired.
	return !at.IsZero() && w.Patched.After(at.Add(clockMargin)) && o.now().Sub(w.Patched) < events.FullOutcomeTTL
}

// review looks at a workload that has changed or gone. While its kind is not served, nobody knows what has become of it.
func (o *rollouts) review(ctx context.Context, key workload.Key) {
	if o.index.IsUnserved(key, o.now()) {
		return
	}
	w := o.index.Get(key)
	failed := o.peers.keys[key]
	bakes := w != nil && w.Revision == failed.revision && (failed.lostPods() || o.canaries.isTrying(w, failed.rolled, failed.own))
	if untested, recovered := o.peers.recovered(key, w, bakes, o.now()); recovered {
		if bakes && failed.outcome.Verb != "" {
			o.reporter.report(ctx, o.outcomes.baked(failed.outcome, w))
		}
		o.canaries.require(key.Namespace, untested)
		o.debounce.releaseNamespace(key.Namespace, o.now())
	}
	if w != nil {
		o.problems.report(ctx, w)
	} else {
		o.problems.forget(key)
	}
	if o.patcher.busy(key) {
		return // Until the patch is finished, it is not known who made the revision.
	}
	if end, ok := o.following.review(key, w, o.bake(key, w)); ok {
		o.ended(ctx, end)
	}
}

// bake returns how long the pods of a workload must stay ready after the rollout that is followed.
func (o *rollouts) bake(key workload.Key, w *workload.Workload) time.Duration {
	r := o.following.rollouts[key]
	if r == nil || w == nil || r.ready.IsZero() && w.Progress.State != workload.Complete {
		return 0
	}
	return o.canaries.bake(w, r)
}

// reviewBaking looks at the workloads whose pods have to stay ready, at those that have failed, which may have recovered without a change, and at
// those that were not there when this leader began, because their kind was not served.
func (o *rollouts) reviewBaking(ctx context.Context) {
	for key, r := range o.following.rollouts {
		if !r.ready.IsZero() || o.index.Get(key) == nil {
			o.review(ctx, key)
		}
	}
	for key := range o.peers.keys {
		o.review(ctx, key)
	}
}

// reviewOverdue ends the rollouts that take too long.
func (o *rollouts) reviewOverdue(ctx context.Context) {
	// A held workload may no longer need a roll, or a slot: a Deployment that was scaled to zero needs no slot.
	o.debounce.releaseAll(o.now())
	o.reviewBaking(ctx)
	for _, end := range o.following.overdue() {
		o.ended(ctx, end)
	}
}

// ended reports a rollout that has ended.
func (o *rollouts) ended(ctx context.Context, end ending) {
	ctx = end.rollout.context(ctx)
	outcome := end.outcome
	if failsPeers(outcome) {
		o.peers.addFor(outcome, end.rollout.own)
	}
	if outcome.Reason == reasonReverted {
		o.reverts.add(end.rollout.span, outcome, end.rollout.before)
	}
	o.metrics.ended(ctx, outcome.Workload.Kind, outcome, end.took)
	if outcome.Verb == events.VerbCompleted {
		for _, at := range end.rollout.changed {
			o.metrics.ready(ctx, outcome.Workload.Kind, end.rollout.rolledOut(o.now()).Sub(at))
		}
	}
	o.log.InfoContext(ctx, "rollout ended", "workload", outcome.Workload.String(), "namespace", outcome.Workload.Namespace,
		"verb", string(outcome.Verb), "reason", outcome.Reason, "message", outcome.Message,
		"seconds", end.took.Round(time.Millisecond).Seconds())
	o.reporter.report(ctx, outcome)
	if failsPeers(outcome) {
		o.debounce.releaseNamespace(outcome.Workload.Namespace, o.now())
		return
	}
	o.debounce.releaseHeld(workload.KeyOf(outcome.Workload), o.now())
}
