package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// noteRetry is how long after a note on a workload the same one is not sent again.
	noteRetry = time.Minute
	// pauseShown is how long a pause that has ended stays noted on a workload, so that whoever sees the roll also sees what it has waited for.
	pauseShown = 10 * time.Second
)

// notes writes on workloads, without rolling them, what the next leader must find there, and reports the decisions that need no patch. It only
// remembers what it has tried, and whose roll was reverted.
type notes struct {
	*term
	// repetitions says when workloads are compared with their sources again because someone else reverted a roll, or the record is impossible.
	repetitions map[workload.Key]time.Time
	// reverted has the records to be corrected.
	reverted map[workload.Key]*correction
	// marked is when a mark was last sent, for workloads whose marks are to be corrected.
	marked map[workload.Key]time.Time
	// paused has the workloads on which a pause is noted, and when to try again to remove the note.
	paused map[workload.Key]time.Time
	// hasOwed says that a note of what a workload waits for has ended, so that the next one need not wait for the next look.
	hasOwed bool
	records
}

func newNotes(t *term) *notes {
	return &notes{
		term: t, repetitions: make(map[workload.Key]time.Time), reverted: make(map[workload.Key]*correction),
		marked: make(map[workload.Key]time.Time), paused: make(map[workload.Key]time.Time),
		records: records{turns: make(map[workload.Key]*recordTurn)},
	}
}

// review looks at a workload that has changed or gone.
func (n *notes) review(key workload.Key) {
	n.reviewPause(key)
	n.reviewRecord(key)
}

// look writes what is missing after some time. What waits is still held then: see loop.reviewOverdue.
func (n *notes) look(ctx context.Context) {
	n.noteOwed(ctx)
	n.endPauses(ctx)
	n.collect()
	for key := range n.marked {
		n.mark(ctx, key, nil) // A workload that has recovered may not change any more.
	}
}

func (n *notes) advance(ctx context.Context) {
	for key, c := range n.reverted {
		n.correct(ctx, key, c)
	}
	if n.hasOwed {
		n.noteOwed(ctx)
	}
	n.record(ctx)
}

// send sends the patch that writes on a workload, and returns false if none is sent: in a dry run, while the kind is not served, or at the end of a
// term. What names that in the log. The task has what is special about the patch. Its finish, which may be nil, is called with the result.
func (n *notes) send(ctx context.Context, w *workload.Workload, what string, write workload.Write, note task) bool {
	k, known := n.kinds.Named(w.ID.Kind)
	if !known || w.Unserved || n.options.DryRun || n.patcher.draining {
		return false
	}
	patch, err := k.Patch(w, write)
	if err != nil {
		n.log.ErrorContext(ctx, "cannot make a patch of the record", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
		return false
	}
	note.kind, note.workload, note.patch = k, w, patch
	if note.span == nil {
		note.span = trace.SpanFromContext(ctx)
	}
	finish := note.finish
	note.finish = func(ctx context.Context, result patchResult) {
		n.count(result.task.context(ctx), result, what)
		if finish != nil {
			finish(ctx, result)
		}
	}
	n.patcher.start(ctx, &note)
	return true
}

// count counts the result of a patch, and logs a failure unless the workload has changed meanwhile. One in the background delays no roll.
func (n *notes) count(ctx context.Context, result patchResult, what string) {
	id := result.task.workload.ID
	switch {
	case result.err == nil:
		n.metrics.patched(ctx, id, false)
	case !kube.HasChanged(result.err):
		if !result.task.background {
			n.metrics.patchFailed(ctx, id.Kind)
		}
		n.log.WarnContext(ctx, "writing to a workload failed; retrying later", "what", what, "workload", id.String(), "namespace", id.Namespace,
			"err", result.err)
	}
}

// mark writes into the mark of a workload that its last rollout has failed or recovered, and calls done when the patch is finished. It returns false
// if it sends none.
func (n *notes) mark(ctx context.Context, key workload.Key, done func(context.Context, patchResult)) bool {
	w := n.index.Get(key)
	last, differs := n.markOf(w)
	if !differs {
		delete(n.marked, key)
		return false
	}
	if n.patcher.busy(key) || n.now().Sub(n.marked[key]) < noteRetry {
		return false
	}
	// Others wait for it, so it is sent in the background.
	isSent := n.send(ctx, w, "what has become of the last roll", workload.Write{Last: &last}, task{background: true, finish: done})
	if isSent {
		n.marked[key] = n.now()
	}
	return isSent
}

// markOf returns the mark that a workload should have, and whether it has another one. The workload is nil if it is gone.
func (n *notes) markOf(w *workload.Workload) (last workload.Last, differs bool) {
	if w == nil || !w.AtLast() {
		return workload.Last{}, false
	}
	last = w.Last
	switch failed := n.peers.keys[w.Key()]; {
	case failed != nil && last.Failed == "" && last.Revision == failed.outcome.Revision:
		last.Failed, last.Since = failed.outcome.Reason, failed.outcome.Time
		return last, true
	case failed == nil && last.Failed != "" && w.Progress.State == workload.Complete:
		last.With, last.Failed, last.Since = nil, "", time.Time{}
		return last, true
	}
	return last, false
}

// conclude reports a decision about an event that no pending change holds for it, and that needs no patch. The context is the event's.
func (n *notes) conclude(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	n.metrics.decided(ctx, decision.Reason)
	addDecision(e.span, decision)
	n.leave(ctx, e, w, decision)
}

// release ends a pending change with the decision about it, and reports that unless a rollout does. Only a dry run ends a change that would wait.
func (n *notes) release(ctx context.Context, w *workload.Workload, change *pendingChange, decision plan.Decision) {
	n.metrics.decided(ctx, decision.Reason)
	if decision.Reason.Action() != plan.Roll {
		n.leave(change.event.context(ctx), change.event, w, decision)
	}
	change.event.release()
}

func (n *notes) releaseAll(ctx context.Context, p *pending, reason plan.Reason) {
	for source, change := range p.changes {
		decision := plan.Decision{Source: source, Reason: reason}
		addDecision(change.event.span, decision)
		n.release(ctx, p.seen, change, decision)
	}
}

// leave has a decision recorded that rolls nothing, logs it, and publishes its outcome unless the reason is silent.
func (n *notes) leave(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	if decision.Records && decision.Reason.Action() == plan.Skip {
		n.want(w.Key())
	}
	n.log.DebugContext(ctx, "workload left alone", "workload", w.ID.String(), "namespace", w.ID.Namespace,
		"source", decision.Source.String(), "reason", decision.Reason.String())
	if decision.Reason.Silent() {
		return
	}
	n.report(ctx, n.outcomes.skipped(ctx, e.change, w, decision))
}

// reviewPause looks for the note of a pause on a workload that has changed or gone. A client that has paused the Deployment itself ends that.
func (n *notes) reviewPause(key workload.Key) {
	w := n.index.Get(key)
	if w == nil || w.Pause.Begun.IsZero() || w.IsPausedBySomeone() {
		delete(n.paused, key)
	} else if _, known := n.paused[key]; !known {
		n.paused[key] = time.Time{}
	}
}

// beginPause notes that a pause has begun. If that fails, or the note is removed, it tries again when the workload changes, at most once a minute.
func (n *notes) beginPause(ctx context.Context, w *workload.Workload, p *pending) {
	if now := n.now(); now.Sub(p.pauseAsked) >= noteRetry {
		p.pauseAsked = now
		n.send(ctx, w, "the beginning of a pause", workload.Write{PausedAt: p.rollsSince}, task{})
	}
}

func (n *notes) endPauses(ctx context.Context) {
	now := n.now()
	for key, retry := range n.paused {
		w := n.index.Get(key)
		if w == nil || now.Before(retry) || now.Before(w.Pause.Begun.Add(w.Pause.Period+pauseShown)) {
			continue
		}
		if !n.patcher.busy(key) && n.debounce.byKey[key] == nil && n.patcher.hasRoom(key.Namespace) {
			n.paused[key] = now.Add(noteRetry)
			n.send(ctx, w, "the end of a pause", workload.Write{EndsPause: true}, task{})
		}
	}
}
