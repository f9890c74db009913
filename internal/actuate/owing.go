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

// noteOwed notes in the records of waiting workloads what they are to be rolled for, where nothing else on them shows that, and writes a record again
// that others have removed meanwhile. The next leader sees it there. What is not noted when a term ends has changed so recently that the next leader
// knows that from the Lease. While a source is on hold, or a rollout aborted, it also records the other changes that need no roll.
func (n *notes) noteOwed(ctx context.Context) {
	n.hasOwed = false
	for key, p := range n.debounce.byKey {
		if n.patcher.full() {
			return
		}
		if now := n.now(); now.Before(p.noteAt) || now.Before(p.noteRetry) || p.age(now) < n.options.SettleMax {
			continue // There may be thousands, and for most of them this is the only check.
		}
		w := n.index.Get(key)
		if w == nil || w.Unserved || n.patcher.busy(key) || !n.patcher.hasRoom(key.Namespace) {
			continue
		}
		decisions, recorded, next := n.unnoted(p, w)
		write, needed := plan.Note(w, decisions, true)
		if !needed {
			p.noteAt = next
			continue
		}
		n.send(ctx, w, "what it waits for", write, task{finish: func(ctx context.Context, result patchResult) { n.noted(ctx, result, recorded) }})
	}
}

// unnoted returns the decisions of what is to be noted on a workload now, those of them that end the change of an event, and when to look at it again
// if nothing is to be noted.
func (n *notes) unnoted(
	p *pending, w *workload.Workload,
) (decisions []plan.Decision, recorded map[*takenEvent]plan.Decision, next time.Time) {
	now, waitsLong := n.now(), p.held == plan.SourceOnHold || p.held == plan.Aborted
	recorded, next = make(map[*takenEvent]plan.Decision), now.Add(owingLook)
	for _, c := range p.changes {
		decision := n.decider.decide(w, c.change, p.memory(c, now))
		isRecord, due := waitsLong && decision.Reason.Action() == plan.Record, c.since.Add(n.options.SettleMax)
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

// noted takes the result of a patch, and ends the changes that it has recorded, unless later events have taken their places.
func (n *notes) noted(ctx context.Context, result patchResult, recorded map[*takenEvent]plan.Decision) {
	p := n.debounce.byKey[result.task.key()]
	switch {
	case p == nil: // It does not wait any more.
	case result.err == nil:
		p.unnoted, p.noteRetry = 0, n.now().Add(owingLook) // Whoever removes it does so again.
		for e, decision := range recorded {
			if c := p.changes[decision.Source]; c != nil && c.event == e {
				n.conclude(e.context(ctx), e, result.task.workload, decision)
				n.debounce.forget(p.key, decision.Source)
			}
		}
		n.hasOwed = true
	default:
		p.unnoted++
		p.noteRetry = n.now().Add(backoff.Nth(recordBackoff(), p.unnoted))
	}
}
