package actuate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// restoredMessage says that the rollout itself is gone, and not only its pod template.
const restoredMessage = "the workload is as it was before the rollout, as after a restore of etcd"

// endIfOver ends the rollout of a workload if it is over. W is nil if the workload was deleted. Bake is how long its pods must stay ready.
func (o *rollouts) endIfOver(ctx context.Context, key workload.Key, w *workload.Workload, bake time.Duration) {
	if w == nil {
		delete(o.told, key)
	}
	r := o.followed[key]
	switch {
	case r == nil:
	case w == nil && !o.watches(key):
		o.end(ctx, key, events.VerbSkipped, reasonUnwatched, "the actuator no longer watches workloads of this kind or namespace")
	case w == nil || w.ID.UID != r.started.Workload.UID:
		o.end(ctx, key, events.VerbSkipped, plan.WorkloadGone.String(), plan.WorkloadGone.Sentence())
	case r.isAheadOf(w) && events.Newer(w.Version, r.started.ResourceVersion):
		o.end(ctx, key, events.VerbSkipped, reasonSuperseded, restoredMessage)
	case r.isAheadOf(w): // A new leader's list may be older than the rollout.
	case w.Revision != r.started.Revision:
		o.endReplaced(ctx, key, w)
	case w.Progress.State == workload.Complete && r.bakes(w, bake, o.now()): // The pods have to stay ready for longer.
	case w.Progress.State == workload.Complete:
		o.end(ctx, key, events.VerbCompleted, reasonRolledOut, w.Progress.Message)
	case w.Progress.Aborted:
		o.end(ctx, key, events.VerbFailed, reasonAborted, w.Progress.Message)
	case w.Progress.State == workload.Failed:
		o.end(ctx, key, events.VerbFailed, reasonDeadlineExceeded, w.Progress.Message)
	case bake > 0 && r.lostPods(w):
		message := fmt.Sprintf("pods did not stay ready for %s, but for %s: %s", bake, o.now().Sub(r.ready).Round(time.Second), w.Progress.Advice())
		o.end(ctx, key, events.VerbFailed, reasonBakeFailed, message)
	default:
		r.observe(w, o.now())
	}
}

// endReplaced ends the rollout of a workload whose pod template now has another revision.
func (o *rollouts) endReplaced(ctx context.Context, key workload.Key, w *workload.Workload) {
	r := o.followed[key]
	switch w.Fate(workload.Seen{Before: r.rolled, Since: o.now().Add(-o.options.RolloutTimeout)}) {
	case workload.RollReverted:
		o.end(ctx, key, events.VerbFailed, reasonReverted, revertedMessage(w, r.started, o.options.RevertDelays))
	case workload.RollUndone:
		o.end(ctx, key, events.VerbSkipped, plan.Undone.String(), plan.Undone.Sentence())
	default:
		o.end(ctx, key, events.VerbSkipped, reasonSuperseded, "the revision on the pod template was changed by someone else")
	}
}

// watches reports whether the kind and the namespace of a workload are watched. An earlier leader may have had other options.
func (o *rollouts) watches(key workload.Key) bool {
	_, known := o.kinds.Named(key.Kind)
	return known && kube.Includes(o.options.Namespaces, o.options.IgnoreNamespaces, key.Namespace)
}

// endOverdue ends rollouts that make no progress, so that they free their slots. Time does not count while the progress is unknown.
func (o *rollouts) endOverdue(ctx context.Context) {
	now := o.now()
	for key, r := range o.followed {
		w := o.index.Get(key)
		if w == nil || w.Unserved {
			r.moved = now
			continue
		}
		r.observe(w, now)
		switch {
		case now.Sub(r.moved) < o.options.RolloutTimeout:
		case r.isAheadOf(w):
			o.end(ctx, key, events.VerbSkipped, reasonSuperseded, restoredMessage)
		default:
			message := fmt.Sprintf("no progress for %s: %s", o.options.RolloutTimeout, w.Progress.Advice())
			o.end(ctx, key, events.VerbFailed, reasonTimedOut, message)
		}
	}
}

// end ends and reports the rollout of a workload. A failure is recorded on the workload before it is reported.
func (o *rollouts) end(ctx context.Context, key workload.Key, verb events.Verb, reason, message string) {
	r, outcome := o.unfollow(key, verb, reason, message)
	o.orders.review(key)
	ctx = r.context(ctx)
	ready := cmp.Or(r.ready, o.now())
	took := ready.Sub(r.started.StartedAt)
	if outcome.Reason == reasonReverted {
		o.notes.revert(ctx, r.span, outcome, r.before)
	}
	o.metrics.ended(ctx, outcome)
	o.metrics.rolledOut(ctx, outcome, took)
	if outcome.Verb == events.VerbCompleted {
		for _, at := range r.changed {
			o.metrics.ready(ctx, outcome.Workload.Kind, ready.Sub(at))
		}
	}
	o.log.InfoContext(ctx, "rollout ended", "workload", outcome.Workload.String(), "namespace", outcome.Workload.Namespace,
		"verb", string(outcome.Verb), "reason", outcome.Reason, "message", outcome.Message,
		"seconds", took.Round(time.Millisecond).Seconds())
	tell := func() {
		o.outbox.add(outcome)
		o.kube.report(ctx, outcome, textOf(r.started))
	}
	if outcome.Verb != events.VerbFailed || outcome.Reason == reasonReverted {
		tell()
		return
	}
	o.peers.add(r, outcome)
	if !o.notes.mark(ctx, key, func(context.Context, patchResult) { tell() }) {
		tell()
	}
}

// failedPeers contains the workloads whose last rollout failed and that have not recovered. Their marks tell the next leader the same.
type failedPeers struct {
	keys map[workload.Key]*failure
	// replaced contains the changes that remain suspect after another pod template replaced a failed rollout, until the last roll is complete.
	replaced map[workload.Key]map[string]workload.RolledFor
}

// failure is a failed rollout with its outcome.
type failure struct {
	*rollout
	outcome events.Outcome
}

func (f *failedPeers) has(key workload.Key) bool { return f.keys[key] != nil }

func (f *failedPeers) add(r *rollout, outcome events.Outcome) {
	r.unready()
	f.keys[workload.KeyOf(outcome.Workload)] = &failure{r, outcome}
}

// blamed returns the changes that may have caused the failure.
func (f *failure) blamed() map[string]workload.RolledFor {
	if f.rolled == nil {
		return nil
	}
	return f.rolled.Blamed()
}

// suspects returns the changes that are suspect because of a workload.
func (f *failedPeers) suspects(key workload.Key) map[string]workload.RolledFor {
	if failed := f.keys[key]; failed != nil {
		return failed.blamed()
	}
	return f.replaced[key]
}

func (f *failedPeers) suspect(key workload.Key, changes map[string]workload.RolledFor) {
	if len(changes) > 0 {
		f.replaced[key] = changes
	}
}

// clear drops the suspects of a replaced rollout once the last roll of the workload is complete, or the workload was deleted (w is nil).
func (f *failedPeers) clear(key workload.Key, w *workload.Workload) {
	if w == nil || w.AtLast() && w.Progress.State == workload.Complete {
		delete(f.replaced, key)
	}
}

// in returns the workloads of a namespace that make changes suspect.
func (f *failedPeers) in(namespace string) []workload.Key {
	var keys []workload.Key
	for key := range f.keys {
		if key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	for key := range f.replaced {
		if key.Namespace == namespace && !f.has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}
