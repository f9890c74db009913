package actuate

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// The reasons of outcomes that no decision is behind.
const (
	reasonRolledOut        = "rolled-out"
	reasonDeadlineExceeded = "deadline-exceeded"
	reasonTimedOut         = "timed-out"
	reasonSuperseded       = "superseded"
)

// rollout is a rollout in progress.
type rollout struct {
	// started is the outcome that said that it began.
	started events.Outcome
	span    trace.Span
	ctx     context.Context
	// changed are the times at which the watcher saw the changes that it is for, as far as they are known.
	changed []time.Time
}

// isFor tells whether the rollout is for a change of the source.
func (r *rollout) isFor(source events.Source) bool {
	return slices.ContainsFunc(r.started.Sources, func(s events.OutcomeSource) bool { return s.Source == source.String() })
}

// waits tells whether somebody has told the workload's controller to wait.
func (r *rollout) waits(w *workload.Workload) bool { return w.Progress.State == workload.Waiting }

// follow watches a rollout that has begun to its end.
func (e *engine) follow(ctx context.Context, result patchResult) {
	key := result.after.Key()
	if earlier := e.rollouts[key]; earlier != nil && earlier.started.Revision != result.started.Revision {
		e.end(ctx, key, earlier, events.VerbSkipped, reasonSuperseded, "a later change began another rollout")
	}
	e.reported[key] = result.started.Revision
	e.attend(ctx, key, result.started)
	for _, c := range result.roll.causes {
		e.rollouts[key].changed = append(e.rollouts[key].changed, c.change.Time)
	}
	e.log.InfoContext(e.rollouts[key].ctx, "a workload was rolled", "workload", result.after.ID.String(),
		"namespace", result.after.ID.Namespace, "cause", result.roll.cause, "reason", result.started.Reason, "revision", result.started.Revision)
	e.review(ctx, key)
}

// attend begins the span of a rollout, which may have been begun by another actuator.
func (e *engine) attend(ctx context.Context, key workload.Key, started events.Outcome) {
	spanCtx, span := e.options.Tracer.Start(started.Trace.Context(ctx), "rollout "+key.Kind,
		trace.WithTimestamp(started.StartedAt), trace.WithAttributes(rolloutAttributes(started)...))
	e.rollouts[key] = &rollout{started: started, span: span, ctx: spanCtx}
}

// review looks at a workload that has changed: at its rollout, where there is one, and at what waits for it.
func (e *engine) review(ctx context.Context, key workload.Key) {
	w := e.index.get(key)
	if _, ok := e.failed[key]; ok && (w == nil || w.Progress.State != workload.Failed) {
		delete(e.failed, key)
		e.releaseHeld()
	}
	if w != nil {
		e.reporter.problems(ctx, w)
	} else {
		delete(e.reporter.told, key)
	}
	r := e.rollouts[key]
	if r == nil {
		return
	}
	switch {
	case w == nil || w.ID.UID != r.started.Workload.UID:
		e.end(ctx, key, r, events.VerbFailed, plan.WorkloadGone.String(), plan.WorkloadGone.Sentence())
	case w.Generation < r.started.Generation:
		// This state of it is older than the rollout.
	case w.Revision != r.started.Revision:
		e.end(ctx, key, r, events.VerbSkipped, reasonSuperseded, "somebody else has changed the revision on the pod template")
	case w.Progress.State == workload.Complete:
		e.end(ctx, key, r, events.VerbCompleted, reasonRolledOut, w.Progress.Message)
	case w.Progress.State == workload.Failed:
		e.failed[key] = struct{}{}
		e.end(ctx, key, r, events.VerbFailed, reasonDeadlineExceeded, w.Progress.Message)
	}
}

// reviewOverdue ends the rollouts that take too long, so that they do not take a place for ever.
func (e *engine) reviewOverdue(ctx context.Context) {
	// What waits for a place may have got one without an end that was seen: a Deployment that was paused takes none.
	e.releaseHeld()
	for key, r := range e.rollouts {
		w := e.index.get(key)
		if w == nil || r.waits(w) || e.options.Now().Sub(r.started.StartedAt) < e.options.RolloutTimeout {
			continue
		}
		e.end(ctx, key, r, events.VerbFailed, reasonTimedOut, w.Progress.Message)
	}
}

// adopt follows a rollout that an actuator began and could not tell of any more.
func (e *engine) adopt(t *ticket, w *workload.Workload, decision plan.Decision) {
	key := w.Key()
	if w.Revision == "" || e.reported[key] == w.Revision || t.delivery.Deliveries < 2 {
		return
	}
	started := e.skipped(t, w, decision)
	started.Verb, started.Revision, started.Generation, started.StartedAt = events.VerbStarted, w.Revision, w.Generation, started.Time
	e.reported[key] = w.Revision
	e.reporter.report(t.ctx, started)
	e.attend(t.ctx, key, started)
	e.review(t.ctx, key)
}

func (e *engine) end(ctx context.Context, key workload.Key, r *rollout, verb events.Verb, reason, message string) {
	delete(e.rollouts, key)
	now := e.options.Now()
	outcome := r.started
	outcome.Verb, outcome.Reason, outcome.Message, outcome.Time = verb, reason, message, now.UTC()
	if w := e.index.get(key); w != nil {
		outcome.ResourceVersion = w.Version
	}
	r.span.SetAttributes(outcomeAttributes(outcome)...)
	if verb == events.VerbFailed {
		r.span.SetStatus(codes.Error, reason)
		r.span.SetAttributes(semconv.ErrorTypeKey.String(reason))
	}
	r.span.End(trace.WithTimestamp(now))
	e.metrics.ended(r.ctx, key.Kind, outcome, now.Sub(r.started.StartedAt))
	if verb == events.VerbCompleted {
		for _, at := range r.changed {
			e.metrics.ready(r.ctx, key.Kind, now.Sub(at))
		}
	}
	e.log.InfoContext(r.ctx, "a rollout has ended", "workload", outcome.Workload.String(), "namespace", outcome.Workload.Namespace,
		"verb", string(verb), "reason", reason, "seconds", now.Sub(r.started.StartedAt).Round(time.Millisecond).Seconds())
	e.reporter.report(r.ctx, outcome)
	e.releaseHeld()
}

// resume takes up the rollouts that were in progress when an actuator last looked: those whose last outcome on the stream
// is that they began.
func (e *engine) resume(ctx context.Context) {
	for _, w := range e.index.all() {
		if w.Progress.State == workload.Failed && w.Revision != "" {
			e.failed[w.Key()] = struct{}{}
		}
		e.reporter.problems(ctx, w)
	}
	err := e.bus.State(ctx, []string{events.OutcomeFilter(e.options.Cluster)}, func(stored events.Stored) error {
		outcome, err := events.ParseOutcome(stored.Event)
		if err != nil {
			e.log.WarnContext(ctx, "an outcome on the stream cannot be read", "subject", stored.Subject, "err", err)
			return nil
		}
		key := workload.KeyOf(outcome.Workload)
		if outcome.Revision != "" {
			e.reported[key] = outcome.Revision
		}
		if outcome.Verb == events.VerbStarted {
			e.attend(ctx, key, outcome)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		// Rollouts are still made and followed; only the ends of earlier ones are not told.
		e.log.ErrorContext(ctx, "the last outcomes cannot be read", "err", err)
	}
	for key, r := range e.rollouts {
		r.changed = e.changesOf(ctx, r.started)
		e.review(ctx, key)
	}
}

// changesOf gives the times of the changes that a rollout is for, of those that the stream still has.
func (e *engine) changesOf(ctx context.Context, started events.Outcome) []time.Time {
	var times []time.Time
	for _, cause := range started.Sources {
		source, err := events.ParseSource(cause.Source)
		if err != nil {
			continue
		}
		source = workload.SourceNamed(source.Kind, started.Workload.Namespace, source.Name)
		stored, err := e.options.origins().Last(ctx, &e.bus.Reader, source)
		if err != nil {
			continue // superseded by a deletion that has expired, or asked for in vain: then it is not measured
		}
		if change, err := stored.Change(); err == nil && change.ID() == cause.Event {
			times = append(times, change.Time)
		}
	}
	return times
}
