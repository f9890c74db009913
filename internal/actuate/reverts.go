package actuate

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// reverts corrects the records of workloads whose roll someone else reverted by restoring the earlier pod template, because their pods may be the
// earlier ones, too. Later it makes the changes be decided again. The number of reverts is written on the workload, so that the next leader
// continues.
type reverts struct {
	notes
	// delays are Options.RevertDelays.
	delays [plan.RevertRetries]time.Duration
	// reconsider is that of intake.
	reconsider func(context.Context, workload.Key)

	open map[workload.Key]*correction
	// repetitions says when the last change of a source is to be decided again for a workload.
	repetitions map[repetition]time.Time
}

type repetition struct {
	workload workload.Key
	source   events.Source
}

// correction is for a record that still says that a workload was rolled.
type correction struct {
	uid string
	// revision is that of the pod template that was restored.
	revision string
	// changes are those that the workload was rolled for. before is the record from before the roll, as far as it is known.
	changes, before map[string]workload.RolledFor
	// span is that of the rollout.
	span trace.Span
	// failures counts the failed patches. due is when the next one may be sent.
	failures int
	due      time.Time
}

// add adds a correction for the outcome of a rollout that was reverted, unless the record is correct. The correction is traced below the span.
func (v *reverts) add(span trace.Span, reverted events.Outcome, before map[string]workload.RolledFor) {
	key := workload.KeyOf(reverted.Workload)
	w := v.index.Get(key)
	if v.dryRun || w == nil {
		return
	}
	changes := workload.ChangesOf(reverted)
	for source, change := range changes {
		if w.Rolled[source].SameChange(change) {
			v.open[key] = &correction{uid: w.ID.UID, revision: w.Revision, changes: changes, before: before, span: span}
			return
		}
	}
}

// next returns when a change is to be decided again, and false if none is.
func (v *reverts) next() (time.Time, bool) {
	var next time.Time
	for _, due := range v.repetitions {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, !next.IsZero()
}

// hasten makes what is to be decided again for a workload due now: it is to be rolled for something else anyway.
func (v *reverts) hasten(key workload.Key) {
	for r := range v.repetitions {
		if r.workload == key {
			v.repetitions[r] = v.now()
		}
	}
}

// repeats reports whether the last change of a source is to be decided again for a workload, but not yet.
func (v *reverts) repeats(key workload.Key, source events.Source) bool {
	_, waits := v.repetitions[repetition{key, source}]
	return waits
}

// advance decides again what is due, and sends the patches that can be sent now.
func (v *reverts) advance(ctx context.Context) {
	for r, due := range v.repetitions {
		if !v.now().Before(due) {
			delete(v.repetitions, r)
			v.reconsider(ctx, r.workload)
		}
	}
	for key, c := range v.open {
		if v.patcher.busy(key) || v.now().Before(c.due) || !v.patcher.hasRoom(key.Namespace) {
			continue
		}
		w := v.index.Get(key)
		if w != nil && w.Unserved {
			continue
		}
		if w == nil || w.ID.UID != c.uid || w.Revision != c.revision {
			delete(v.open, key) // The workload is gone, or has a different pod template by now.
			continue
		}
		write := workload.Write{Rolled: w.Unrolled(c.changes, c.before), Reverted: w.RevertedAgain(c.changes)}
		note := v.note(ctx, w, "that a roll was reverted", write, v.finish)
		if note == nil {
			delete(v.open, key)
			continue
		}
		note.attempts, note.span = c.failures, c.span
		v.patcher.start(ctx, note)
	}
}

// finish takes the result of a patch.
func (v *reverts) finish(_ context.Context, result patchResult) {
	key := result.task.key()
	if result.err == nil {
		delete(v.open, key)
		v.repeat(result.after)
		return
	}
	c := v.open[key]
	c.failures++
	c.due = v.now().Add(backoff.Nth(kube.DenialBackoff(maxDenied), c.failures)) // By then, there may be nothing to correct any more.
}

// repeat makes the changes whose rolls were reverted be decided again later, except those that were reverted too often.
func (v *reverts) repeat(w *workload.Workload) {
	for text, reverted := range w.Reverted {
		change := workload.RolledFor{Version: reverted.Version, UID: reverted.UID}
		count := w.Reverts(text, change)
		source, err := events.ParseSource(text)
		if err != nil || count == 0 || count > plan.RevertRetries || w.Rolled[text].SameChange(change) {
			continue
		}
		r := repetition{w.Key(), workload.SourceNamed(source.Kind, w.ID.Namespace, source.Name)}
		due := v.now().Add(v.delays[count-1])
		if earlier, known := v.repetitions[r]; !known || due.Before(earlier) {
			v.repetitions[r] = due
		}
	}
	if v.debounce.byKey[w.Key()].owes() {
		v.hasten(w.Key())
	}
}

// revertedMessage says who reverted a rollout, and what comes next. The delays are Options.RevertDelays.
func revertedMessage(w *workload.Workload, started events.Outcome, delays [plan.RevertRetries]time.Duration) string {
	by := "another client"
	switch {
	case w.ManagerIsLast:
		by = fmt.Sprintf("the field manager %q", w.Manager)
	case w.Manager != "":
		// A manager that has only removed what the actuator wrote does not appear in managedFields for that.
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
