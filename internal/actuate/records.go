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
	// recordPause is the shortest time between two records, which limits them to 20 a second.
	recordPause = 50 * time.Millisecond
	// recordLooks is how many workloads are checked in a row before the loop does something else.
	recordLooks = 100
	// renewPause is the shortest time between two records of a workload whose record falls behind the decisions again and again.
	renewPause = time.Minute
	// recordMemory is how long a workload with a complete record is remembered, in case another client removes the record again.
	recordMemory = 12 * time.Hour
)

// recordBackoff returns the delays between attempts to complete a record. They grow beyond the interval of any GitOps controller that removes it.
func recordBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 3, Jitter: 0.1, Steps: 20, Cap: 6 * time.Hour}
}

// records completes the records that lack something, according to plan.Note or because another client removed it, slowly and one at a time when
// nothing else is to be done. The workloads show what is left to do, so a new leader needs no other state.
type records struct {
	turns map[workload.Key]*recordTurn
	queue []workload.Key
	// recording says that a patch is in flight. next is when another one may begin.
	recording bool
	next      time.Time
}

// recordTurn is the state of a workload whose record is, or was, to be completed.
type recordTurn struct {
	// lacking says that the record may lack something. queued says that the workload is in the queue.
	lacking, queued bool
	// due is when it may be queued again, and wrote is when the last patch was sent.
	due, wrote time.Time
	// backoff delays the patches until the record is complete. lost delays those that write a removed record again, not before lostDue.
	backoff, lost wait.Backoff
	lostDue       time.Time
}

// want schedules a check of a workload: its record lacks a decision, or it may want other sources now.
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

// reviewRecord checks the record of a workload that has changed or was deleted.
func (n *notes) reviewRecord(key workload.Key) {
	switch w := n.index.Get(key); {
	case w == nil:
		delete(n.turns, key)
		delete(n.denials, key)
		n.state.met.Delete(key)
	case n.options.DryRun:
	case w.IsRecordLost():
		turn := n.turn(key)
		turn.due = turn.lostDue // Earlier patches do not delay the repair of a removed record.
		n.enqueue(key, turn)
	case len(w.Reverted) > 0:
		n.enqueue(key, n.turn(key)) // If its pod template has changed, its pods have the changes that it was to be rolled for.
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

// nextRecord returns when the next record may be written, and false if there is none to write.
func (n *notes) nextRecord() (time.Time, bool) { return n.next, !n.recording && len(n.queue) > 0 }

func (n *notes) record(ctx context.Context) {
	for range recordLooks {
		if n.recording || len(n.queue) == 0 || n.now().Before(n.next) {
			return
		}
		key := n.queue[0]
		n.queue = n.queue[1:]
		if turn := n.turns[key]; turn != nil && turn.queued { // Otherwise, the workload was deleted meanwhile.
			turn.queued = false
			n.complete(ctx, key, turn)
		}
	}
}

// complete writes what the record of a workload lacks, unless the workload is unsettled; then the next look tries again.
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
		// The loop corrects it, and reports that, unlike what is written here.
		if _, waits := n.repetitions[key]; !waits {
			n.repetitions[key] = n.now()
		}
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

// isForged reports whether a decision corrects an impossible record, which users must learn of.
func isForged(decision plan.Decision) bool { return decision.Reason == plan.RecordCorrected }

// isUnsettled reports whether a workload has pending changes, a patch in flight, a rollout in progress or a record to correct, or is not served.
func (n *notes) isUnsettled(key workload.Key) bool {
	return n.debounce.byKey[key] != nil || n.patcher.busy(key) || n.rollouts.followed[key] != nil || n.reverted[key] != nil ||
		n.index.IsUnserved(key, n.now())
}

// owingLook is the interval between checks of a workload with complete notes, unless another change arrives or the workload changes.
const owingLook = time.Minute

// noteOwed notes for the next leader, in the records of waiting workloads, which changes they are to be rolled for, where nothing else shows this.
// While a source is on hold or a rollout is aborted, it also records the changes that need no roll.
func (n *notes) noteOwed(ctx context.Context) {
	n.hasOwed = false
	for key, p := range n.debounce.byKey {
		if n.patcher.full() {
			return
		}
		if now := n.now(); now.Before(p.noteAt) || now.Before(p.noteRetry) || p.age(now) < n.options.settleMax() {
			continue // There may be thousands, and most of them end here.
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

// unnoted returns the decisions to note now, those of them that end a pending change, and the time of the next check if there are none.
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

// noted handles the result of a patch, and ends the recorded changes that no later event has replaced.
func (n *notes) noted(ctx context.Context, result patchResult, recorded map[*takenEvent]plan.Decision) {
	p := n.debounce.byKey[result.task.key()]
	switch {
	case p == nil: // The workload does not wait any more.
	case result.err == nil:
		p.unnoted, p.noteRetry = 0, n.now().Add(owingLook) // If another client removes the note, the next one waits.
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
