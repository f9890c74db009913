package actuate

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// heldPatience is how long a new leader reads reported holds, and startsTimeout how long it reads started Jobs.
const heldPatience, startsTimeout = 5 * time.Second, 30 * time.Second

// lastOutcomes returns the last outcome of each workload on the stream, and false if the context ended. It retries until it has all of them: without
// them, workloads might roll to content that has failed elsewhere.
func (o *rollouts) lastOutcomes(ctx context.Context) (map[workload.Key]events.Outcome, bool) {
	delays := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 10, Cap: 2 * time.Second}
	for {
		outcomes, err := o.readOutcomes(ctx)
		if err == nil || ctx.Err() != nil {
			return outcomes, ctx.Err() == nil
		}
		delay := delays.Step()
		o.log.WarnContext(ctx, "cannot read the last outcomes; retrying", "retry_in", delay, "err", err)
		if !kube.Sleep(ctx, delay) {
			return nil, false
		}
	}
}

// readOutcomes reads the last outcomes that are readable and matter to a new leader.
func (o *rollouts) readOutcomes(ctx context.Context) (map[workload.Key]events.Outcome, error) {
	if err := o.bus.Answers(ctx); err != nil {
		return nil, err
	}
	outcomes := make(map[workload.Key]events.Outcome)
	err := o.bus.State(ctx, []string{events.OutcomeFilter(o.bus.Cluster())}, func(stored events.Stored) error {
		outcome, err := stored.Outcome()
		if err != nil {
			o.log.WarnContext(ctx, "cannot read an outcome on the stream", "subject", stored.Subject, "err", err)
			return nil
		}
		// The stream also has outcomes of deleted workloads, which may be far more than there are workloads.
		if key := workload.KeyOf(outcome.Workload); outcome.Verb == events.VerbStarted || o.index.Get(key) != nil {
			outcomes[key] = outcome
		}
		return nil
	})
	return outcomes, err
}

// readHolds adds the workloads whose last outcome is a hold. If the stream cannot be read, their holds are reported again.
func (o *rollouts) readHolds(ctx context.Context, told toldHolds) {
	bounded, cancel := context.WithTimeout(ctx, heldPatience)
	defer cancel()
	err := o.bus.LastOutcomes(bounded, o.bus.Cluster(), func(stored events.Stored) error {
		if last, err := stored.Outcome(); err == nil && last.Verb == events.VerbHeld {
			told[workload.KeyOf(last.Workload)] = last
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		o.log.WarnContext(ctx, "cannot read the last outcomes; holds may be reported again", "err", err)
	}
}

// streamBegan returns when the oldest of the cluster's events on the stream was stored, zero if unknown.
func (o *rollouts) streamBegan(ctx context.Context) time.Time {
	at, err := o.bus.Oldest(ctx, append(events.SourceFilters(o.bus.Cluster()), events.OutcomeFilter(o.bus.Cluster())))
	if err != nil && !errors.Is(err, events.ErrNotFound) && ctx.Err() == nil {
		o.log.WarnContext(ctx, "cannot read the oldest event; a rollout without an outcome may stay without one", "err", err)
	}
	return at
}

// readStarts reads the Jobs that others have started, if CronJobs may not be written and the outcomes may be on other streams.
func (o *rollouts) readStarts(ctx context.Context) {
	if !o.options.Reloader.On || !slices.ContainsFunc(o.index.All(), (*workload.Workload).NeedsStarts) {
		return
	}
	for _, namespace := range kube.Listed(o.options.Namespaces) {
		bounded, cancel := context.WithTimeout(ctx, startsTimeout)
		found, err := workload.ReadStarts(bounded, o.options.clients(), namespace)
		cancel()
		if err != nil && ctx.Err() == nil && !kube.IsMissingRight(err, "list") {
			o.log.WarnContext(ctx, "cannot list jobs; one that another leader has started may be started again",
				"namespace", namespace, "err", err)
		}
		for _, w := range o.index.All() {
			if started, ok := found[w.ID.UID]; ok {
				o.index.Keep(w.Key(), func(known *workload.Workload) *workload.Workload { return known.KeepingStarts(started) })
			}
		}
	}
}

// shadowRetry is the time between attempts to restore a workload. After it, the API server has given up on a deletion that was sent before.
const shadowRetry = time.Minute

// reviewShadow updates the shadows after a workload has changed that may stand for a deleted one.
func (o *rollouts) reviewShadow(key workload.Key) {
	w := o.index.Get(key)
	if o.options.DryRun || w == nil || w.StandsFor == (workload.Key{}) {
		delete(o.shadows, key)
		return
	}
	// A former leader may still be creating the workload for the duration of one patch. Each of its attempts makes a new shadow.
	left, known := o.shadows[key]
	if taken := w.Created.Add(kube.PatchTimeout); !known || taken.After(left.due) {
		left.due = taken
		o.shadows[key] = left
	}
}

// restore restores the deleted workloads that nobody is creating again, or is about to.
func (o *rollouts) restore(ctx context.Context) {
	for key, left := range o.shadows {
		w := o.index.Get(key)
		k, known := o.kinds.Named(key.Kind)
		if w == nil || !known || o.now().Before(left.due) || o.patcher.busy(w.StandsFor) || o.debounce.byKey[w.StandsFor] != nil ||
			!o.patcher.hasRoom(key.Namespace) {
			continue
		}
		o.shadows[key] = shadow{due: o.now().Add(shadowRetry), tried: w.ID.UID}
		o.patcher.start(ctx, &task{
			kind: k, workload: w, patch: k.Restore(w, left.tried == w.ID.UID), restores: w.StandsFor,
			span: trace.SpanFromContext(ctx), finish: o.finishRestore,
		})
	}
}

func (o *rollouts) finishRestore(ctx context.Context, result patchResult) {
	id, of := result.task.workload.ID, result.task.workload.StandsFor
	switch {
	case result.err == nil && result.after.Revision == result.task.workload.Revision:
		o.log.InfoContext(ctx, "workload restored", "workload", of.Kind+"/"+of.Name, "namespace", of.Namespace)
		o.restored(ctx, result.after)
	case result.err == nil: // It was not deleted, or another client created one with its name.
	case !apierrors.IsNotFound(result.err):
		o.metrics.patchFailed(ctx, id.Kind)
		o.log.WarnContext(ctx, "restoring a workload failed; retrying", "workload", of.Kind+"/"+of.Name, "namespace", of.Namespace,
			"retry_in", shadowRetry, "err", result.err)
	}
}
