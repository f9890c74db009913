package actuate

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// owingPatience is how long a leader whose term ends may still start to note what is left.
const owingPatience = 2 * time.Second

// owingLook is how long a workload for which everything is noted is not looked at again, unless another change comes.
const owingLook = time.Minute

// owing notes in the records of waiting workloads what they are to be rolled for, if the stream may forget that: an event that was recalled is
// not in flight, and the event of a deletion expires. The next leader recalls what is noted.
type owing struct {
	notes
	policy plan.Policy

	turns map[workload.Key]*owingTurn
}

// owingTurn says when the same may be noted on a workload again, after the patch was refused or someone has removed the note.
type owingTurn struct {
	due     time.Time
	backoff wait.Backoff
	tried   map[string]workload.RolledFor
}

// begin reports whether entries may be noted now, and if so, records that they are. New entries need not wait.
func (t *owingTurn) begin(entries map[string]workload.RolledFor, now time.Time) bool {
	fresh := false
	for source, entry := range entries {
		fresh = fresh || t.tried[source] != entry
	}
	if fresh {
		t.backoff = recordBackoff()
	} else if now.Before(t.due) {
		return false
	}
	maps.Copy(t.tried, entries)
	t.due = now.Add(t.backoff.Step())
	return true
}

// advance notes what is not noted yet. Ending says that the term of this leader ends: it will not patch any of the changes that it gathers.
func (o *owing) advance(ctx context.Context, ending bool) {
	maps.DeleteFunc(o.turns, func(key workload.Key, _ *owingTurn) bool { return o.debounce.byKey[key] == nil })
	if o.dryRun {
		return
	}
	for key, p := range o.debounce.byKey {
		if !ending && (!p.isStuck() || o.now().Before(p.noteAt)) || !p.mayBeForgotten() {
			continue // There may be thousands, and for most of them this is the only check.
		}
		w := o.index.Get(key)
		if w == nil || w.Unserved || o.patcher.busy(key) || !o.patcher.hasRoom(key.Namespace) {
			continue
		}
		entries := w.Notable(o.entries(p, w))
		if len(entries) == 0 {
			p.noteAt = o.now().Add(owingLook)
		}
		if len(entries) == 0 || !o.turn(key).begin(entries, o.now()) {
			continue
		}
		o.send(ctx, w, workload.Write{Rolled: entries}, o.finish)
	}
}

func (o *owing) turn(key workload.Key) *owingTurn {
	if o.turns[key] == nil {
		o.turns[key] = &owingTurn{tried: make(map[string]workload.RolledFor)}
	}
	return o.turns[key]
}

// entries returns what is to be noted on a workload.
func (o *owing) entries(p *pending, w *workload.Workload) map[string]workload.RolledFor {
	entries := make(map[string]workload.RolledFor)
	for source, c := range p.changes {
		if !c.mayBeForgotten() {
			continue
		}
		decision := o.policy.Decide(w, c.change, p.past(c, o.now()))
		if action := decision.Reason.Action(); action != plan.Roll && action != plan.Hold {
			continue
		}
		if owed := workload.Owed(decision.Record); w.Rolled[source.String()] != owed || w.IsRecordLost() {
			entries[source.String()] = owed
		}
	}
	return entries
}

// finish takes the result of a patch.
func (o *owing) finish(ctx context.Context, result patchResult) {
	id := result.task.workload.ID
	switch {
	case result.err == nil:
		o.metrics.patched(ctx, id, false)
	case kube.HasChanged(result.err):
		delete(o.turns, result.task.key()) // The next patch is made from the current state of the workload.
	default:
		o.metrics.patchFailed(ctx, id.Kind)
		o.log.WarnContext(ctx, "noting what a workload waits for failed; retrying later", "workload", id.String(),
			"namespace", id.Namespace, "err", result.err)
	}
}
