package actuate

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// correction describes a record that still contains a reverted roll.
type correction struct {
	uid string
	// revision is the revision of the restored pod template.
	revision string
	// changes are those of the reverted roll. before is the record before that roll, where known.
	changes, before map[string]workload.RolledFor
	span            trace.Span
	// failures counts the failed patches. due is when the next one may be sent.
	failures int
	due      time.Time
}

// revert corrects the record of a workload whose roll was reverted, if the record still has the changes. Before is the earlier record, if known.
func (n *notes) revert(ctx context.Context, span trace.Span, reverted events.Outcome, before map[string]workload.RolledFor) {
	key := workload.KeyOf(reverted.Workload)
	w := n.index.Get(key)
	if n.options.DryRun || w == nil {
		return
	}
	changes := workload.ChangesOf(reverted)
	for source, change := range changes {
		if w.Rolled[source].SameChange(change) {
			n.reverted[key] = &correction{uid: w.ID.UID, revision: w.Revision, changes: changes, before: before, span: span}
			n.correct(ctx, key, n.reverted[key])
			return
		}
	}
}

func (n *notes) correct(ctx context.Context, key workload.Key, c *correction) {
	w := n.index.Get(key)
	switch {
	case n.patcher.busy(key) || n.now().Before(c.due) || !n.patcher.hasRoom(key.Namespace) || w != nil && w.Unserved:
		return
	case w == nil || w.ID.UID != c.uid || w.Revision != c.revision:
		delete(n.reverted, key) // The workload was deleted, or its pod template has changed.
		return
	}
	finish := func(_ context.Context, result patchResult) {
		if result.err == nil {
			delete(n.reverted, key)
			n.repeat(result.after)
			return
		}
		c.failures++
		c.due = n.now().Add(kube.NthDelay(kube.DenialBackoff(maxDenied), c.failures)) // By then, there may be nothing left to correct.
	}
	write := workload.Write{Rolled: w.Unrolled(c.changes, c.before), Reverted: w.RevertedAgain(c.changes)}
	if !n.send(ctx, w, "the revert of a roll", write, task{attempts: c.failures, span: c.span, finish: finish}) {
		delete(n.reverted, key)
	}
}

// repeat schedules a comparison of a workload with the sources of its reverted rolls, now if it is to be rolled for something else anyway.
func (n *notes) repeat(w *workload.Workload) {
	key := w.Key()
	for source, reverted := range w.Reverted {
		count := w.Reverts(source, reverted)
		if count == 0 || count > plan.RevertRetries || w.Rolled[source].SameChange(reverted) {
			continue
		}
		due := n.now().Add(n.options.RevertDelays[count-1])
		if earlier, known := n.repetitions[key]; !known || due.Before(earlier) {
			n.repetitions[key] = due
		}
	}
	if n.debounce.byKey[key].owes() {
		n.hasten(key)
	}
}

// hasten moves a scheduled comparison of a workload to now, because it is to be rolled for something else anyway.
func (n *notes) hasten(key workload.Key) {
	if _, waits := n.repetitions[key]; waits {
		n.repetitions[key] = n.now()
	}
}

// nextRepetition returns when the next scheduled comparison is due, and false if there is none.
func (n *notes) nextRepetition() (time.Time, bool) {
	var next time.Time
	for _, due := range n.repetitions {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// revertedMessage says who reverted a rollout and what happens next. The delays are Options.RevertDelays.
func revertedMessage(w *workload.Workload, started events.Outcome, delays [plan.RevertRetries]time.Duration) string {
	by := "another client"
	switch {
	case w.ManagerIsLast:
		by = fmt.Sprintf("the field manager %q", w.Manager)
	case w.Manager != "":
		// A manager that has only removed the actuator's fields does not appear in managedFields for that.
		by += fmt.Sprintf(", perhaps the field manager %q,", w.Manager)
	}
	count := 0
	for source, change := range workload.ChangesOf(started) {
		count = max(count, w.Reverts(source, change))
	}
	next := "it is not rolled again for this change"
	if count < plan.RevertRetries {
		next = "it is rolled again in " + delays[count].String()
	}
	return by + " restored the pod template of before; " + next
}
