package actuate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// reverts corrects the records of workloads whose roll someone else reverted by restoring the earlier pod template, because their pods may be the
// earlier ones, too.
type reverts struct {
	notes
	repetitions *repetitions

	open map[workload.Key]*correction
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

// advance sends the patches that can be sent now.
func (v *reverts) advance(ctx context.Context) {
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
		v.repetitions.add(result.after)
		return
	}
	c := v.open[key]
	c.failures++
	c.due = v.now().Add(backoff.Nth(kube.DenialBackoff(maxDenied), c.failures)) // By then, there may be nothing to correct any more.
}
