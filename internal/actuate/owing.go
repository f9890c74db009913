package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

// owingLook is how long a workload for which everything is noted is not looked at again, unless another change comes or the workload changes.
const owingLook = time.Minute

// owing notes in the records of waiting workloads what they are to be rolled for, where nothing else on them shows that, and writes a record again
// that others have removed meanwhile. The next leader sees it there. What it has not noted when its term ends has changed so recently that the next
// leader knows that from the Lease. While a source is on hold, or a rollout aborted, it also records the other changes that need no roll.
type owing struct {
	notes
	decider   *decider
	concluder *concluder
	// after is how long a change waits before it is noted: the longest debounce.
	after time.Duration
	// hasMore says that a note has ended, so that the next one need not wait for the next look.
	hasMore bool
}

// advance notes what is not noted yet.
func (o *owing) advance(ctx context.Context) {
	o.hasMore = false
	if o.dryRun || o.patcher.draining {
		return
	}
	for key, p := range o.debounce.byKey {
		if o.patcher.full() {
			return
		}
		if now := o.now(); now.Before(p.noteAt) || now.Before(p.noteRetry) || p.age(now) < o.after {
			continue // There may be thousands, and for most of them this is the only check.
		}
		w := o.index.Get(key)
		if w == nil || w.Unserved || o.patcher.busy(key) || !o.patcher.hasRoom(key.Namespace) {
			continue
		}
		decisions, recorded, next := o.decide(p, w)
		write, needed := plan.Note(w, decisions, true)
		if !needed {
			p.noteAt = next
			continue
		}
		o.send(ctx, w, "what it waits for", write, func(ctx context.Context, result patchResult) { o.finish(ctx, result, recorded) })
	}
}

// decide returns the decisions of what is to be noted on a workload now, those of them that end the change of an event, and when to look at it again
// if nothing is to be noted.
func (o *owing) decide(
	p *pending, w *workload.Workload,
) (decisions []plan.Decision, recorded map[*takenEvent]plan.Decision, next time.Time) {
	now, waitsLong := o.now(), p.held == plan.SourceOnHold || p.held == plan.Aborted
	recorded, next = make(map[*takenEvent]plan.Decision), now.Add(owingLook)
	for _, c := range p.changes {
		decision := o.decider.decide(w, c.change, p.memory(c, now))
		isRecord, due := waitsLong && decision.Reason.Action() == plan.Record, c.since.Add(o.after)
		switch {
		case !decision.Unnoted && !isRecord:
		case !now.Before(due):
			decisions = append(decisions, decision)
			if isRecord {
				recorded[c.event] = decision
			}
		case due.Before(next):
			next = due
		}
	}
	return decisions, recorded, next
}

// finish takes the result of a patch, and ends the changes that it has recorded, unless later events have taken their places.
func (o *owing) finish(ctx context.Context, result patchResult, recorded map[*takenEvent]plan.Decision) {
	p := o.debounce.byKey[result.task.key()]
	switch {
	case p == nil: // It does not wait any more.
	case result.err == nil:
		p.unnoted, p.noteRetry = 0, o.now().Add(owingLook) // Whoever removes it does so again.
		for e, decision := range recorded {
			if c := p.changes[decision.Source]; c != nil && c.event == e {
				o.concluder.conclude(e.context(ctx), e, result.task.workload, decision)
				o.debounce.forget(p.key, decision.Source)
			}
		}
		o.hasMore = true
	default:
		p.unnoted++
		p.noteRetry = o.now().Add(backoff.Nth(recordBackoff(), p.unnoted))
	}
}
