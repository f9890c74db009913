package actuate

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// recordPause is the shortest time between the starts of two records: 20 a second.
	recordPause = 50 * time.Millisecond
	// recordLooks is how many workloads are looked at, one after the other, before the loop does something else.
	recordLooks = 100
	// renewPause is the shortest time between two records of a workload for which something is decided again and again that its record lacks.
	renewPause = time.Minute
	// recordMemory is how long a workload with a complete record is remembered, in case someone removes the record again.
	recordMemory = 12 * time.Hour
)

// recordBackoff returns the delays between attempts to complete a record. They grow beyond the interval of any GitOps controller that removes it.
func recordBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 3, Jitter: 0.1, Steps: 20, Cap: 6 * time.Hour}
}

// records has the workloads whose records lack something, by plan.Decide or because others have removed it. They are written slowly, one at a time,
// when nothing else is to be done. The workloads show what is left to do, so nothing is lost with the leader.
type records struct {
	turns map[workload.Key]*recordTurn
	queue []workload.Key
	// recording says that a patch is under way. next is when another may begin.
	recording bool
	next      time.Time
}

// recordTurn is a workload whose record is to be completed, or was.
type recordTurn struct {
	// lacking says that the record may lack something. queued says that the workload is in the queue.
	lacking, queued bool
	// due is when it may be put into the queue again, and wrote is when the last patch was sent.
	due, wrote time.Time
	// backoff has the delays after patches until the record lacks nothing, and lost those after patches that write it again, not before lostDue.
	backoff, lost wait.Backoff
	lostDue       time.Time
}

// want has a workload looked at soon: something is decided for it that its record lacks, or it may have come to want other sources.
func (n *notes) want(key workload.Key) {
	if n.options.DryRun {
		return
	}
	turn := n.turn(key)
	if soon := turn.wrote.Add(renewPause); soon.Before(turn.due) {
		turn.due = soon
	}
	n.enqueue(key, turn)
}

// reviewRecord looks at the record of a workload that has changed or gone.
func (n *notes) reviewRecord(key workload.Key) {
	switch w := n.index.Get(key); {
	case w == nil:
		delete(n.turns, key)
		delete(n.denials, key)
		n.state.met.Delete(key)
	case n.options.DryRun:
	case w.IsRecordLost():
		turn := n.turn(key)
		turn.due = turn.lostDue // Other records of the workload say nothing about who removes it.
		n.enqueue(key, turn)
	case len(w.Reverted) > 0:
		n.enqueue(key, n.turn(key)) // If its pod template is another one by now, its pods have what it was to be rolled for.
	}
}

func (n *notes) turn(key workload.Key) *recordTurn {
	turn := n.turns[key]
	if turn == nil {
		turn = &recordTurn{backoff: recordBackoff(), lost: recordBackoff()}
		n.turns[key] = turn
	}
	turn.lacking = true
	return turn
}

// collect queues the workloads that are due, and forgets those that have been complete for a long time.
func (n *notes) collect() {
	for key, turn := range n.turns {
		switch {
		case turn.lacking:
			n.enqueue(key, turn)
		case !turn.queued && n.now().Sub(turn.due) > recordMemory:
			delete(n.turns, key)
		}
	}
}

func (n *notes) enqueue(key workload.Key, turn *recordTurn) {
	if !turn.queued && !n.now().Before(turn.due) {
		turn.queued = true
		n.queue = append(n.queue, key)
	}
}

// nextRecord returns when the next record may be written, and false if there is nothing to do.
func (n *notes) nextRecord() (time.Time, bool) { return n.next, !n.recording && len(n.queue) > 0 }

func (n *notes) record(ctx context.Context) {
	for range recordLooks {
		if n.recording || len(n.queue) == 0 || n.now().Before(n.next) {
			return
		}
		key := n.queue[0]
		n.queue = n.queue[1:]
		if turn := n.turns[key]; turn != nil && turn.queued { // Otherwise it has gone meanwhile.
			turn.queued = false
			n.complete(ctx, key, turn)
		}
	}
}

// complete writes what the record of a workload lacks, if anything, and unless the workload has something else to do. Then it is looked at again.
func (n *notes) complete(ctx context.Context, key workload.Key, turn *recordTurn) {
	w := n.index.Get(key)
	switch {
	case w == nil:
		delete(n.turns, key)
		return
	case n.isUnsettled(key):
		return
	}
	decisions := n.decideAll(w)
	if slices.ContainsFunc(decisions, isForged) {
		n.compareNow(key) // Nothing is told of what is written here.
		return
	}
	write, needed := plan.Note(w, decisions, false)
	turn.lacking = needed
	if !needed {
		turn.due, turn.backoff = turn.wrote.Add(renewPause), recordBackoff()
		return
	}
	write.Version = w.Version
	turn.due = n.now().Add(turn.backoff.Step())
	if w.IsRecordLost() {
		turn.lostDue = n.now().Add(turn.lost.Step())
		turn.due = turn.lostDue
	}
	finish := func(context.Context, patchResult) { n.recording = false }
	if n.send(ctx, w, "what the record lacks", write, task{background: true, finish: finish}) {
		n.recording, n.next, turn.wrote = true, n.now().Add(recordPause), n.now()
	}
}

// isForged reports whether a decision corrects an impossible record. People are to learn of that.
func isForged(decision plan.Decision) bool { return decision.Reason == plan.RecordCorrected }

// isUnsettled reports whether a workload has pending changes, a rollout in progress, or a roll to be corrected, or its kind is not served.
func (n *notes) isUnsettled(key workload.Key) bool {
	return n.debounce.byKey[key] != nil || n.patcher.busy(key) || n.rollouts.followed[key] != nil || n.reverted[key] != nil ||
		n.index.IsUnserved(key, n.now())
}

// owingLook is how long a workload for which everything is noted is not looked at again, unless another change comes or the workload changes.
const owingLook = time.Minute

// noteOwed notes in the records of waiting workloads, for the next leader, what they are to be rolled for, where nothing else shows that. While a
// source is on hold, or a rollout aborted, it also records the other changes that need no roll.
func (n *notes) noteOwed(ctx context.Context) {
	n.hasOwed = false
	for key, p := range n.debounce.byKey {
		if n.patcher.full() {
			return
		}
		if now := n.now(); now.Before(p.noteAt) || now.Before(p.noteRetry) || p.age(now) < n.options.settleMax() {
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

// unnoted returns the decisions to be noted now, those of them that end the change of an event, and when to look again if there are none.
func (n *notes) unnoted(
	p *pending, w *workload.Workload,
) (decisions []plan.Decision, recorded map[*takenEvent]plan.Decision, next time.Time) {
	now, waitsLong := n.now(), p.held == plan.SourceOnHold || p.held == plan.Aborted
	recorded, next = make(map[*takenEvent]plan.Decision), now.Add(owingLook)
	for _, c := range p.changes {
		decision := n.decide(w, c.change, p.memory(c, now))
		isRecord, due := waitsLong && decision.Reason.Action() == plan.Record, c.since.Add(n.options.settleMax())
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
		p.noteRetry = n.now().Add(kube.NthDelay(recordBackoff(), p.unnoted))
	}
}
