package actuate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// These are reasons of outcomes that do not come from a decision.
const (
	reasonRolledOut        = "rolled-out"
	reasonDeadlineExceeded = "deadline-exceeded"
	reasonAborted          = "aborted"
	reasonTimedOut         = "timed-out"
	reasonBakeFailed       = "bake-failed"
	reasonSuperseded       = "superseded"
	reasonReverted         = "reverted"
	reasonUnwatched        = "unwatched"
)

// failureReasons are the reasons of failed rollouts.
var failureReasons = []string{reasonAborted, reasonBakeFailed, reasonDeadlineExceeded, reasonReverted, reasonTimedOut}

// outcomes makes the outcomes of a cluster.
type outcomes struct {
	cluster string
	now     func() time.Time
}

// skipped returns the outcome of a change that needs no roll. The context carries the span that the outcome refers to.
func (o outcomes) skipped(ctx context.Context, change events.Change, w *workload.Workload, decision plan.Decision) events.Outcome {
	return events.Outcome{
		Cluster: o.cluster, Verb: events.VerbSkipped, Workload: w.ID, ResourceVersion: w.Version, Time: o.now().UTC(),
		Cause: change.ID(), Reason: decision.Reason.String(), Message: decision.Reason.Sentence(), Trace: events.TraceFrom(ctx),
		Sources: []events.OutcomeSource{outcomeSource(decision, change)},
	}
}

// found returns the outcome of a roll that is known only from the workload's mark.
func (o outcomes) found(w *workload.Workload) events.Outcome {
	outcome := events.Outcome{
		Cluster: o.cluster, Verb: events.VerbStarted, Workload: w.ID, ResourceVersion: w.Version, Revision: w.Last.Revision, Generation: w.Generation,
		Time: o.now().UTC(), StartedAt: w.Last.At, Reason: plan.AlreadyRolled.String(),
	}
	newest, changes := "", w.ChangesIn(w.Last.For)
	sources := slices.Sorted(maps.Keys(changes))
	outcome.Message = "rolled for " + strings.Join(sources, ", ") + "; found on the workload, its start was not reported"
	for _, source := range sources {
		change := changes[source]
		if change.Version == workload.NoVersion || change.IsLowWater() {
			continue
		}
		event := change.UID + "/" + change.Version
		outcome.Sources = append(outcome.Sources, events.OutcomeSource{
			Source: source, Fingerprint: change.Fingerprint, ResourceVersion: change.Version, Event: event,
		})
		if newest == "" || events.Newer(change.Version, newest) {
			newest, outcome.Cause = change.Version, event
		}
	}
	return outcome
}

// waiting returns the outcome of the pending changes of a workload and the decisions about them, in the order of their sources.
func (o outcomes) waiting(ctx context.Context, verb events.Verb, w *workload.Workload, p *pending, decisions []plan.Decision) events.Outcome {
	outcome := events.Outcome{
		Cluster: o.cluster, Verb: verb, Workload: w.ID, ResourceVersion: w.Version, Time: o.now().UTC(), Trace: events.TraceFrom(ctx),
	}
	newest := ""
	for _, decision := range decisions {
		change := p.changes[decision.Source].change
		outcome.Sources = append(outcome.Sources, outcomeSource(decision, change))
		if newest == "" || events.Newer(change.ResourceVersion, newest) {
			newest, outcome.Cause = change.ResourceVersion, change.ID()
		}
	}
	return outcome
}

func (o outcomes) held(ctx context.Context, w *workload.Workload, p *pending, doing []plan.Decision, why obstacle) events.Outcome {
	outcome := o.waiting(ctx, events.VerbHeld, w, p, doing)
	outcome.Reason, outcome.Message = why.reason.String(), why.sentence()
	return outcome
}

// baked returns the outcome of a rollout whose pods stayed ready in the end, so that the next leader need not wait for it.
func (o outcomes) baked(failed events.Outcome, w *workload.Workload) events.Outcome {
	failed.Verb, failed.Reason, failed.Message = events.VerbCompleted, reasonRolledOut, "the pods stayed ready after all"
	failed.Time, failed.ResourceVersion = o.now().UTC(), w.Version
	return failed
}

func (o outcomes) denied(ctx context.Context, r *task, err error) events.Outcome {
	outcome := o.waiting(ctx, events.VerbFailed, r.workload, r.pending, r.decisions)
	outcome.Reason, outcome.Message = events.ReasonPatchDenied, err.Error()
	return outcome
}

// started returns the outcome of a roll, given the workload in the API server's response.
func (o outcomes) started(ctx context.Context, result patchResult) events.Outcome {
	outcome := o.rolled(ctx, result)
	outcome.Verb, outcome.Generation, outcome.StartedAt = events.VerbStarted, result.after.Generation, outcome.Time
	outcome.Message = "rolled for " + result.task.cause
	if instead := result.task.way.instead; instead != "" {
		outcome.Message += "; not in place: " + instead
	}
	return outcome
}

// reloaded returns the outcome of a reload in place, without a rollout.
func (o outcomes) reloaded(ctx context.Context, result patchResult) events.Outcome {
	outcome, pods := o.rolled(ctx, result), "pods"
	outcome.Verb, outcome.Reason = events.VerbCompleted, events.ReasonReloadedInPlace
	if result.reloaded == 1 {
		pods = "pod"
	}
	outcome.Message = fmt.Sprintf("%d %s answered the request to reload at %s for %s",
		result.reloaded, pods, result.task.workload.InPlace.Endpoint, result.task.cause)
	return outcome
}

// rolled returns the common part of the outcomes of a patch.
func (o outcomes) rolled(ctx context.Context, result patchResult) events.Outcome {
	r, after := result.task, result.after
	outcome := events.Outcome{
		Cluster: o.cluster, Workload: after.ID, ResourceVersion: after.Version, Revision: r.patch.Revision, Time: result.at.UTC(),
		Cause: r.newest().change.ID(), Trace: events.TraceFrom(ctx),
	}
	for _, decision := range r.decisions {
		if decision.Reason.Action() == plan.Roll {
			outcome.Reason = decision.Reason.String()
			outcome.Sources = append(outcome.Sources, outcomeSource(decision, r.pending.changes[decision.Source].change))
		}
	}
	return outcome
}

func outcomeSource(decision plan.Decision, change events.Change) events.OutcomeSource {
	return events.OutcomeSource{
		Source: decision.Source.String(), Fingerprint: decision.Record.Fingerprint, ResourceVersion: decision.Record.Version,
		Keys: decision.Keys, Event: change.ID(),
	}
}

// toldHolds contains the last outcome of each workload that was reported as held, so that a new leader does not report the hold again.
type toldHolds map[workload.Key]events.Outcome

// has reports whether the workload's last outcome is a hold for the same reason that includes all of the same changes.
func (t toldHolds) has(held events.Outcome) bool {
	last, known := t[workload.KeyOf(held.Workload)]
	return known && last.Reason == held.Reason && !slices.ContainsFunc(held.Sources, func(waits events.OutcomeSource) bool {
		return !slices.ContainsFunc(last.Sources, func(told events.OutcomeSource) bool {
			return told.Source == waits.Source && told.Event == waits.Event
		})
	})
}

// denials contains, by workload and source, the ID of the last change whose patch was reported as refused.
type denials map[workload.Key]map[string]string

// isTold reports whether a refusal was reported for each of the changes that the patch rolls the workload for.
func (d denials) isTold(r *task) bool {
	return len(r.causes) > 0 && !slices.ContainsFunc(r.causes, func(c *pendingChange) bool { return !d.has(r.workload.Key(), c.change) })
}

func (d denials) resume(last events.Outcome) {
	if last.Reason != events.ReasonPatchDenied {
		return
	}
	for _, cause := range last.Sources {
		d.put(workload.KeyOf(last.Workload), cause.Source, cause.Event)
	}
}

func (d denials) put(key workload.Key, source, event string) {
	if d[key] == nil {
		d[key] = make(map[string]string)
	}
	d[key][source] = event
}

// has reports whether a refusal of the change was reported for the workload.
func (d denials) has(key workload.Key, change events.Change) bool {
	told := d[key]
	return told != nil && told[change.Source.String()] == change.ID()
}
