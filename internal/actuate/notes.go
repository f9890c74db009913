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
	// noteRetry is the shortest time between two attempts to write the same note on a workload.
	noteRetry = time.Minute
	// pauseShown is how long a note of a pause stays on the workload after its end, so that users who see the roll also see why it waited.
	pauseShown = 10 * time.Second
)

// notes writes on workloads, without rolling them, the information that the next leader needs, and reports decisions that need no patch. It remembers
// only its own attempts and reverted rolls.
type notes struct {
	*term
	// repetitions contains the workloads to compare with their sources again, and when: another client reverted a roll, or the record is impossible.
	repetitions map[workload.Key]time.Time
	// reverted contains the records to correct.
	reverted map[workload.Key]*correction
	// marked contains, for workloads whose mark must be corrected, when the correction was last sent.
	marked map[workload.Key]time.Time
	// paused contains the workloads with a note of a pause, and when to try again to remove the note.
	paused map[workload.Key]time.Time
	// hasOwed says that a note of pending changes was written, so that the next one need not wait for the next look.
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

// review updates the state after a workload has changed or was deleted.
func (n *notes) review(key workload.Key) {
	n.reviewPause(key)
	n.reviewRecord(key)
}

// look writes notes that are due after some time. It runs before held workloads are released: see loop.reviewOverdue.
func (n *notes) look(ctx context.Context) {
	n.noteOwed(ctx)
	n.endPauses(ctx)
	n.collect()
	for key := range n.marked {
		n.mark(ctx, key, nil) // A recovered workload may not change any more.
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

// send sends a patch that writes on a workload. It returns false in a dry run, while the kind is not served, and at the end of a term. What describes
// the patch in the log. The note has its special fields; its finish, which may be nil, is called with the result.
func (n *notes) send(ctx context.Context, w *workload.Workload, what string, write workload.Write, note task) bool {
	k, known := n.kinds.Named(w.ID.Kind)
	if !known || w.Unserved || n.options.DryRun || n.patcher.draining {
		return false
	}
	patch, err := k.Patch(w, write)
	if err != nil {
		n.log.ErrorContext(ctx, "cannot create the patch of the record", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
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

// count counts the result of a patch, and logs a failure unless the workload has changed meanwhile. Failures in the background are not counted.
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

// mark records in the mark of a workload that its last rollout has failed or recovered, and calls done after the patch. It returns false if it sends
// no patch.
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
	// Others wait for the mark, so it is sent in the background, where it needs no free worker.
	isSent := n.send(ctx, w, "the result of the last roll", workload.Write{Last: &last}, task{background: true, finish: done})
	if isSent {
		n.marked[key] = n.now()
	}
	return isSent
}

// markOf returns the mark that a workload should have, and whether its mark differs. The workload is nil if it was deleted.
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

// conclude reports a decision that needs no patch, about an event without a pending change. The context is the event's.
func (n *notes) conclude(ctx context.Context, e *takenEvent, w *workload.Workload, decision plan.Decision) {
	n.metrics.decided(ctx, decision.Reason)
	addDecision(e.span, decision)
	n.leave(ctx, e, w, decision)
}

// release ends a pending change and reports the decision, unless a rollout reports it. Only a dry run ends a change that would wait.
func (n *notes) release(ctx context.Context, w *workload.Workload, change *pendingChange, decision plan.Decision) {
	n.metrics.decided(ctx, decision.Reason)
	if decision.Reason.Action() != plan.Roll {
		n.leave(change.event.context(ctx), change.event, w, decision)
	}
	change.event.release()
}

// releaseGone ends the pending changes of a workload that no longer exists.
func (n *notes) releaseGone(ctx context.Context, p *pending) {
	for source, change := range p.changes {
		decision := plan.Decision{Source: source, Reason: plan.WorkloadGone}
		addDecision(change.event.span, decision)
		n.release(ctx, p.seen, change, decision)
	}
}

// leave records a decision that rolls nothing, logs it, and publishes its outcome unless the reason is silent.
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

// reviewPause finds the note of a pause on a changed workload. A client that paused the Deployment itself replaces the pause.
func (n *notes) reviewPause(key workload.Key) {
	w := n.index.Get(key)
	if w == nil || w.Pause.Begun.IsZero() || w.IsPausedBySomeone() {
		delete(n.paused, key)
	} else if _, known := n.paused[key]; !known {
		n.paused[key] = time.Time{}
	}
}

// beginPause notes the beginning of a pause. If the note is lost, a change of the workload leads to another attempt, at most once a minute.
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
