package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/fair"
	"github.com/keyturn/keyturn/internal/workload"
)

// rollouts follows the rollouts in progress to their ends, within the limits of the cluster and of each namespace.
type rollouts struct {
	*term
	followed map[workload.Key]*rollout
	// told has the revision of the last roll that was told of, for each workload that still exists.
	told map[workload.Key]string
	// slots are those of the rollouts in progress. They are counted when one is needed, if isCounted is false.
	slots     *fair.Slots
	isCounted bool
	problems  map[workload.Key]problem
	resumed   time.Time
	// doubted has the workloads that a patch may have rolled although it failed.
	doubted map[workload.Key]doubt
	shadows map[workload.Key]shadow
}

func newRollouts(t *term) *rollouts {
	return &rollouts{
		term: t, followed: make(map[workload.Key]*rollout), told: make(map[workload.Key]string), problems: make(map[workload.Key]problem),
		doubted: make(map[workload.Key]doubt), shadows: make(map[workload.Key]shadow),
	}
}

// started reports and follows a rollout that a patch of this actuator has started, given the outcome that says so.
func (o *rollouts) started(ctx context.Context, result patchResult, started events.Outcome) {
	r := o.begin(ctx, started)
	r.own, r.rolled, r.before = true, result.after, result.task.workload.Rolled
	for _, c := range result.task.causes {
		r.changed = append(r.changed, result.task.pending.waitedSince(c))
	}
	id := result.after.ID
	o.log.InfoContext(r.context(ctx), "workload rolled", "workload", id.String(), "namespace", id.Namespace,
		"cause", result.task.cause, "reason", started.Reason, "revision", started.Revision)
	if result.after.ID.UID != result.task.workload.ID.UID {
		// It was recreated. The index may still have the one before, or none.
		o.end(ctx, result.after.Key(), events.VerbCompleted, reasonRolledOut, result.after.Progress.Message)
	}
}

// restored reports a rollout that ended when the workload was created again from what an earlier attempt has kept, if no outcome says so.
func (o *rollouts) restored(ctx context.Context, w *workload.Workload) {
	if !w.AtLast() || !w.IsUntold(o.told[w.Key()]) {
		return
	}
	started := o.outcomes.found(w)
	started.Message = "recreated from the manifest that an earlier attempt had saved"
	o.begin(ctx, started)
	o.end(ctx, w.Key(), events.VerbCompleted, reasonRolledOut, w.Progress.Message)
}

// begin reports and follows a rollout. The end of the one before is told first: the last outcome of a workload is about its last roll.
func (o *rollouts) begin(ctx context.Context, started events.Outcome) *rollout {
	key := workload.KeyOf(started.Workload)
	delete(o.doubted, key)
	if r := o.followed[key]; r != nil && r.started.Revision != started.Revision {
		o.end(ctx, key, events.VerbSkipped, reasonSuperseded, "a later change started another rollout")
	}
	o.report(ctx, started)
	o.orders.review(key)
	return o.follow(ctx, started)
}

// review looks at a workload that has changed or gone. While its kind is not served, nobody knows what has become of it.
func (o *rollouts) review(ctx context.Context, key workload.Key) {
	o.reviewShadow(key)
	if o.index.IsUnserved(key, o.now()) {
		return
	}
	w := o.index.Get(key)
	if w != nil {
		o.reportProblems(ctx, w)
	} else {
		delete(o.problems, key)
		delete(o.doubted, key)
	}
	if o.patcher.busy(key) {
		return // Until the patch is finished, it is not known who made the revision.
	}
	o.releaseRecovered(ctx, key, w)
	if w != nil {
		o.tellUntold(ctx, w)
	}
	o.endIfOver(ctx, key, w, o.bake(key, w))
	o.notes.mark(ctx, key, nil)
}

// releaseRecovered looks at a workload that had failed. It has recovered when its pods are ready after all, for long enough if others wait.
func (o *rollouts) releaseRecovered(ctx context.Context, key workload.Key, w *workload.Workload) {
	o.peers.clear(key, w)
	failed := o.peers.keys[key]
	switch {
	case failed == nil:
		return
	case w == nil:
	case w.Revision != failed.outcome.Revision:
		o.peers.suspect(key, failed.blamed())
	case w.Progress.State != workload.Complete:
		failed.unready()
		return
	case failed.outcome.Reason == reasonBakeFailed || o.orders.isTrying(w, failed.rollout):
		if failed.bakes(w, w.Bake(), o.now()) {
			return
		}
		o.report(ctx, o.outcomes.baked(failed.outcome, w))
	}
	delete(o.peers.keys, key)
	o.orders.review(key)
}

// bake returns how long the pods of a workload must stay ready after the rollout that is followed.
func (o *rollouts) bake(key workload.Key, w *workload.Workload) time.Duration {
	r := o.followed[key]
	if r == nil || w == nil || r.ready.IsZero() && w.Progress.State != workload.Complete || !o.orders.isTrying(w, r) {
		return 0
	}
	return w.Bake()
}

// reviewFollowed looks at the rollouts in progress and those that have failed: pods may have stayed ready for long enough by now.
func (o *rollouts) reviewFollowed(ctx context.Context) {
	for key := range o.followed {
		o.review(ctx, key)
	}
	for key := range o.peers.keys {
		o.review(ctx, key)
	}
}

func (o *rollouts) reviewOverdue(ctx context.Context) {
	// A held workload may no longer need a roll, or a slot: a Deployment that was scaled to zero needs no slot.
	o.debounce.releaseAll()
	o.reviewFollowed(ctx)
	for key := range o.doubted {
		o.review(ctx, key)
	}
	o.endOverdue(ctx)
	o.restore(ctx)
}
