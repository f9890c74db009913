package actuate

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// clockMargin is how far the clock of the API server may be ahead.
const clockMargin = 10 * time.Second

// resume goes on with the last roll of each workload, by its mark and the last outcomes. It returns false if the context ended.
func (o *rollouts) resume(ctx context.Context) bool {
	told, isKnown := o.lastOutcomes(ctx)
	if !isKnown {
		return false
	}
	for _, last := range told {
		o.index.Keep(workload.KeyOf(last.Workload), func(known *workload.Workload) *workload.Workload { return known.KeepingStart(last) })
		o.denials.resume(last)
	}
	o.resumed = o.now()
	began := sync.OnceValue(func() time.Time { return o.streamBegan(ctx) })
	for _, w := range o.index.All() {
		o.reviewShadow(w.Key())
		o.reportProblems(ctx, w)
		o.notes.repeat(w)
		o.resumeRoll(ctx, w, told[w.Key()], began)
	}
	for key, last := range told {
		if last.Verb == events.VerbStarted && o.index.Get(key) == nil {
			o.follow(ctx, last)
		}
	}
	for _, r := range o.followed {
		r.changed = o.changed(r.started)
	}
	o.reviewFollowed(ctx)
	return true
}

// resumeRoll goes on with the last roll of a workload. Told is its last outcome, zero if there is none.
func (o *rollouts) resumeRoll(ctx context.Context, w *workload.Workload, told events.Outcome, began func() time.Time) {
	key, last := w.Key(), w.Last
	isOver := told.Verb != events.VerbStarted
	if told.Workload.UID != "" && !isOver {
		o.follow(ctx, told)
	}
	o.told[key] = last.Revision
	if o.options.DryRun || w.Deaf || last.Revision == "" {
		return // A Job that is deaf has the mark of another one, whose roll is told.
	}
	isTold := told.Workload.UID == w.ID.UID && told.Revision == last.Revision
	hasEnded := isTold && isOver && told.Reason != reasonReverted
	if hasEnded && told.Verb == events.VerbCompleted && w.IsRolling() {
		w = w.Completed(last.Revision) // What has failed, or is in progress, is a later release.
		o.index.Keep(key, func(known *workload.Workload) *workload.Workload { return known.Completed(last.Revision) })
	}
	seen := workload.Seen{Ended: hasEnded, Since: o.now().Add(-o.options.RolloutTimeout)}
	if isTold && told.Reason == reasonReverted && !w.Edited.After(told.Time.Add(clockMargin)) {
		seen.Since = time.Time{} // It is still as it was told, however long ago that was.
	}
	switch fate := w.Fate(seen); {
	case !isTold && o.isUntold(w, told, fate, began):
		o.begin(ctx, o.outcomes.found(w))
	case isTold && isOver && fate == workload.RollReverted:
		o.notes.revert(ctx, trace.SpanFromContext(ctx), told, nil)
	}
	reason := failedFor(w, told, hasEnded)
	if reason == "" {
		if !w.Last.WasFailing() {
			o.peers.suspect(key, w.ChangesIn(w.Suspects()))
		}
		return
	}
	if r := o.followed[key]; r != nil && r.started.Revision == last.Revision {
		o.end(ctx, key, events.VerbFailed, reason, w.Progress.Message)
		return
	}
	failed := told
	if !isTold {
		failed = o.outcomes.found(w)
	}
	failed.Verb, failed.Reason = events.VerbFailed, reason
	o.peers.add(&rollout{started: failed, span: trace.SpanFromContext(ctx), rolled: w}, failed)
}

// failedFor returns why the last roll of a workload has failed, empty if it has not. The mark does not say that if it could not be written.
func failedFor(w *workload.Workload, told events.Outcome, hasEnded bool) string {
	isRunning := w.Progress.State == workload.Complete || w.Progress.Unready && told.Reason != reasonBakeFailed
	switch {
	case !w.AtLast():
		return ""
	case w.Last.Failed == "" && hasEnded && told.Verb == events.VerbFailed && !isRunning:
		return told.Reason
	}
	return w.Last.Failed
}

// isUntold reports whether the last roll of a workload was never reported, given the last outcome, which is of another roll.
func (o *rollouts) isUntold(w *workload.Workload, told events.Outcome, fate workload.Fate, began func() time.Time) bool {
	// What it is compared with is by other clocks, so in doubt it is reported twice. The time of a mark is precise to a second.
	age, at := o.now().Sub(w.Last.At), w.Last.At.Add(time.Second)
	switch {
	case age >= events.CrowdedOutcomeTTL:
		return false
	case w.IsRolling() && !w.HasFailed() || fate == workload.RollReverted:
		return true // Whoever has told of it, there is more to tell.
	case o.options.LeaderElect && o.options.PrivateStream:
		return false // The previous leader has published it on a stream of its own.
	case told.Workload.UID != "":
		// A later outcome replaces that of the roll, as of a patch that was refused: the outcomes of a workload are published in order.
		return at.After(cmp.Or(told.StartedAt, told.Time)) // when the API server accepted or refused the patch
	}
	// The stream may have lost the outcome since, with those of all workloads, unless it began before. Or the outcome has expired.
	since := began()
	return !since.IsZero() && at.After(since) && age < events.FullOutcomeTTL
}

// changed returns when the watcher saw the changes that a rollout is for, for metrics, as far as they are the last ones of their sources.
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
