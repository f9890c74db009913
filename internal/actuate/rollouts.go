package actuate

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// arrival is how long patches of a former leader may still arrive after it has stopped leading, and how long before that they were decided.
const arrival = 2 * kube.PatchTimeout

// started reports and follows a rollout that this actuator's patch has started. Started is its outcome.
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
		// The workload was recreated. The index may still have the old one, or none.
		o.end(ctx, result.after.Key(), events.VerbCompleted, reasonRolledOut, result.after.Progress.Message)
	}
}

// restored reports the rollout of a workload that was created again from a saved manifest, if no outcome has reported it.
func (o *rollouts) restored(ctx context.Context, w *workload.Workload) {
	if !w.AtLast() || !w.IsUntold(o.told[w.Key()]) {
		return
	}
	started := o.outcomes.found(w)
	started.Message = "recreated from the manifest that an earlier attempt had saved"
	o.begin(ctx, started)
	o.end(ctx, w.Key(), events.VerbCompleted, reasonRolledOut, w.Progress.Message)
}

// begin reports and follows a rollout. It first ends the previous one, as the last outcome of a workload must be about its last roll.
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

// review handles a workload that has changed or was deleted. While its kind is not served, its state is unknown.
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
		return // Until the patch is finished, the origin of the revision is unknown.
	}
	o.releaseRecovered(ctx, key, w)
	if w != nil {
		o.tellUntold(ctx, w)
	}
	o.endIfOver(ctx, key, w, o.bake(key, w))
	o.notes.mark(ctx, key, nil)
}

// releaseRecovered handles a workload that had failed. It has recovered when its pods are ready, for long enough if others wait.
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

// bake returns how long the pods of a workload must stay ready after the followed rollout.
func (o *rollouts) bake(key workload.Key, w *workload.Workload) time.Duration {
	r := o.followed[key]
	if r == nil || w == nil || r.ready.IsZero() && w.Progress.State != workload.Complete || !o.orders.isTrying(w, r) {
		return 0
	}
	return w.Bake()
}

// reviewFollowed checks the rollouts in progress and the failed ones, as pods may have stayed ready for long enough.
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
	o.reportSlow(ctx)
	o.restore(ctx)
}

// reportSlow writes a Kubernetes Event about each slow rollout, for users who look at the workload.
func (o *rollouts) reportSlow(ctx context.Context) {
	for _, r := range o.followed {
		if !r.isShown && o.now().Sub(r.started.StartedAt) >= slowRollout {
			r.isShown = true
			o.kube.reportSlow(r.context(ctx), r.started)
		}
	}
}

// maxProblems limits the reported problems of a workload, in characters, as its author could make the log line arbitrarily long.
const maxProblems = 1000

// reportProblems logs the problems of a workload and writes a Kubernetes Event about its annotations, once for each text.
func (o *rollouts) reportProblems(ctx context.Context, w *workload.Workload) {
	texts := make([]string, 0, len(w.Problems))
	for _, err := range w.Problems {
		texts = append(texts, err.Error())
	}
	was, is := o.problems[w.Key()], problem{text: fmt.Sprintf("%.*s", maxProblems, strings.Join(texts, "; ")), isOrphan: w.IsOrphan()}
	if is == was {
		return
	}
	o.problems[w.Key()] = is
	if is.isOrphan && !was.isOrphan {
		o.log.WarnContext(ctx, "unknown controller; rolling the workload itself", "workload", w.ID.String(), "namespace", w.ID.Namespace,
			"controller", w.Owner.Kind+"/"+w.Owner.Name)
	}
	if is.text != "" && is.text != was.text {
		o.log.WarnContext(ctx, "invalid annotation", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", is.text)
		o.kube.write(ctx, w.ID, kube.Event{Type: corev1.EventTypeWarning, Reason: "InvalidAnnotation", Message: is.text})
	}
}

// doubt remembers a failed patch that may have been applied. If another client rolled the workload, that client has time to report it first.
func (o *rollouts) doubt(r *task, byOthers bool) {
	if !r.rolls {
		return
	}
	d, doubted := o.doubted[r.key()]
	if !doubted {
		d = doubt{since: r.decided.Truncate(time.Second), due: o.now().Add(2 * overdueCheck)}
	}
	if !byOthers {
		d.due = o.now()
	}
	o.doubted[r.key()] = d
}

// tellUntold reports a roll whose response was lost, or whose patch an earlier leader sent.
func (o *rollouts) tellUntold(ctx context.Context, w *workload.Workload) {
	d, doubted := o.doubted[w.Key()]
	if !doubted && o.now().Before(o.resumed.Add(arrival)) {
		d, doubted = doubt{since: o.resumed.Add(-arrival)}, true
	}
	if doubted && !o.now().Before(d.due) && !o.options.DryRun && !w.Deaf && w.IsUntold(o.told[w.Key()]) && !w.Last.At.Before(d.since) {
		o.begin(ctx, o.outcomes.found(w))
	}
}
