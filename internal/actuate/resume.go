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

// clockMargin is how far the API server's clock may be ahead.
const clockMargin = 10 * time.Second

// resume continues with the last roll of each workload, given its mark and the last outcomes. It returns false if the context ended.
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

// resumeRoll continues with the last roll of a workload. Told is its last outcome, zero if there is none.
func (o *rollouts) resumeRoll(ctx context.Context, w *workload.Workload, told events.Outcome, began func() time.Time) {
	key, last := w.Key(), w.Last
	isOver := told.Verb != events.VerbStarted
	if told.Workload.UID != "" && !isOver {
		o.follow(ctx, told)
	}
	o.told[key] = last.Revision
	if o.options.DryRun || w.Deaf || last.Revision == "" {
		return // A deaf Job has the mark of another Job, which reports the roll.
	}
	isTold := told.Workload.UID == w.ID.UID && told.Revision == last.Revision
	hasEnded := isTold && isOver && told.Reason != reasonReverted
	if hasEnded && told.Verb == events.VerbCompleted && w.IsRolling() {
		w = w.Completed(last.Revision) // The failed or unfinished rollout is that of a later release.
		o.index.Keep(key, func(known *workload.Workload) *workload.Workload { return known.Completed(last.Revision) })
	}
	seen := workload.Seen{Ended: hasEnded, Since: o.now().Add(-o.options.RolloutTimeout)}
	if isTold && told.Reason == reasonReverted && !w.Edited.After(told.Time.Add(clockMargin)) {
		seen.Since = time.Time{} // The state is as it was reported, however long ago that was.
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

// failedFor returns why the last roll of a workload failed, empty if it did not. The mark lacks the failure if the patch for it failed.
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

// isUntold reports whether the last roll of a workload was never reported. Told is the last outcome, which is of another roll.
func (o *rollouts) isUntold(w *workload.Workload, told events.Outcome, fate workload.Fate, began func() time.Time) bool {
	// The times come from several clocks, so a roll is reported twice in case of doubt. The time of a mark is in whole seconds.
	age, at := o.now().Sub(w.Last.At), w.Last.At.Add(time.Second)
	switch {
	case age >= events.CrowdedOutcomeTTL:
		return false
	case w.IsRolling() && !w.HasFailed() || fate == workload.RollReverted:
		return true // The roll has a result to report, whoever reported its start.
	case o.options.LeaderElect && o.options.PrivateStream:
		return false // The previous leader has published the outcome on its own stream.
	case told.Workload.UID != "":
		// Outcomes of a workload are published in order, so a later one, such as that of a denied patch, has replaced the outcome of the roll.
		return at.After(cmp.Or(told.StartedAt, told.Time)) // The time of the API server's response.
	}
	// The stream may have lost the outcome together with those of all workloads, unless the stream is older. Or the outcome has expired.
	since := began()
	return !since.IsZero() && at.After(since) && age < events.FullOutcomeTTL
}

// changed returns when the watcher saw the changes of a rollout, for metrics. It omits changes that are not the last ones of their sources.
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
