package actuate

import (
	"context"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// started makes the outcome of a rollout that has begun.
func (o Options) started(ctx context.Context, r *roll, after *workload.Workload) events.Outcome {
	now := o.Now().UTC()
	newest := r.causes[len(r.causes)-1]
	outcome := events.Outcome{
		Cluster: o.Cluster, Verb: events.VerbStarted, Workload: after.ID, ResourceVersion: after.Version, Time: now,
		Cause: newest.change.ID(), Trace: events.TraceFrom(ctx),
		Revision: r.patch.Revision, Generation: after.Generation, StartedAt: now,
		Message: "rolled for " + r.cause,
	}
	for _, decision := range r.decisions {
		if decision.Reason.Action() == plan.Roll {
			outcome.Reason = decision.Reason.String()
			outcome.Sources = append(outcome.Sources, outcomeSource(decision, r.pending.claims[decision.Source].change))
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

// outcome makes an outcome of all that a workload has pending.
func (e *engine) outcome(ctx context.Context, verb events.Verb, w *workload.Workload, p *pending, reason plan.Reason) events.Outcome {
	outcome := events.Outcome{
		Cluster: e.options.Cluster, Verb: verb, Workload: w.ID, ResourceVersion: w.Version, Time: e.options.Now().UTC(),
		Reason: reason.String(), Message: reason.Sentence(), Trace: events.TraceFrom(ctx),
	}
	newest := ""
	for _, c := range p.claims {
		decision := plan.Decide(w, c.change, c.from)
		outcome.Sources = append(outcome.Sources, outcomeSource(decision, c.change))
		if newest == "" || workload.Newer(c.change.ResourceVersion, newest) {
			newest, outcome.Cause = c.change.ResourceVersion, c.change.ID()
		}
	}
	slices.SortFunc(outcome.Sources, func(a, b events.OutcomeSource) int { return strings.Compare(a.Source, b.Source) })
	return outcome
}

// skipped makes the outcome of a change that does nothing to a workload.
func (e *engine) skipped(t *ticket, w *workload.Workload, decision plan.Decision) events.Outcome {
	change := t.delivery.Change
	return events.Outcome{
		Cluster: e.options.Cluster, Verb: events.VerbSkipped, Workload: w.ID, ResourceVersion: w.Version, Time: e.options.Now().UTC(),
		Cause: change.ID(), Reason: decision.Reason.String(), Message: decision.Reason.Sentence(), Trace: events.TraceFrom(t.ctx),
		Sources: []events.OutcomeSource{outcomeSource(decision, change)},
	}
}
