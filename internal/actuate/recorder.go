package actuate

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

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

// recordBackoff returns the delays between attempts to complete the record of one workload. They grow beyond the interval of any GitOps
// controller that removes the record whenever it reconciles.
func recordBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 3, Jitter: 0.1, Steps: 20, Cap: 6 * time.Hour}
}

// recorder writes into the records of workloads, without rolling them, what plan.Decide says that they lack, and writes those again that others have
// removed or replaced. It works slowly on one workload at a time, and only on those that have nothing else to do. The state of the workloads shows
// what is left to do, so nothing is lost with the leader, except a record that is not written again by then.
type recorder struct {
	notes
	decider *decider
	// isUnsettled reports whether a workload has pending changes, a rollout in progress, or a roll to be corrected, or its kind is not served.
	isUnsettled func(workload.Key) bool

	turns map[workload.Key]*recordTurn
	queue []workload.Key
	// busy says that a patch is under way. next is when another may begin.
	busy bool
	next time.Time
}

// recordTurn is a workload whose record is to be completed, or was.
type recordTurn struct {
	// lacking says that the record may lack something. queued says that the workload is in the queue.
	lacking, queued bool
	// due is when it may be put into the queue again.
	due time.Time
	// wrote is when the last patch was sent.
	wrote time.Time
	// backoff has the delays after patches. lost has those after patches that write a record again, which is not before lostDue.
	backoff, lost wait.Backoff
	lostDue       time.Time
}

// want has a workload looked at soon: something is decided for it that its record lacks, or it may have come to want other sources.
func (r *recorder) want(key workload.Key) {
	if r.dryRun {
		return
	}
	turn := r.turn(key)
	if soon := turn.wrote.Add(renewPause); soon.Before(turn.due) {
		turn.due = soon
	}
	r.enqueue(key, turn)
}

// review looks at a workload that has changed or gone.
func (r *recorder) review(key workload.Key) {
	w := r.index.Get(key)
	switch {
	case w == nil:
		delete(r.turns, key)
		r.decider.forget(key)
	case w.IsRecordLost() && !r.dryRun:
		turn := r.turn(key)
		turn.due = turn.lostDue // Other records of the workload say nothing about who removes it.
		r.enqueue(key, turn)
	case len(w.Reverted) > 0:
		r.enqueue(key, r.turn(key)) // If its pod template is another one by now, its pods have what it was to be rolled for.
	}
}

// turn returns that of a workload whose record may lack something.
func (r *recorder) turn(key workload.Key) *recordTurn {
	turn := r.turns[key]
	if turn == nil {
		turn = &recordTurn{backoff: recordBackoff(), lost: recordBackoff()}
		r.turns[key] = turn
	}
	turn.lacking = true
	return turn
}

// collect queues the workloads that are due, and forgets those that have been complete for a long time.
func (r *recorder) collect() {
	for key, turn := range r.turns {
		switch {
		case turn.lacking:
			r.enqueue(key, turn)
		case !turn.queued && r.now().Sub(turn.due) > recordMemory:
			delete(r.turns, key)
		}
	}
}

func (r *recorder) enqueue(key workload.Key, turn *recordTurn) {
	if !turn.queued && !r.now().Before(turn.due) {
		turn.queued = true
		r.queue = append(r.queue, key)
	}
}

// nextDue returns when advance has something to do, and false if there is nothing to do.
func (r *recorder) nextDue() (time.Time, bool) { return r.next, !r.busy && len(r.queue) > 0 }

// advance begins with the next workloads, if it is time.
func (r *recorder) advance(ctx context.Context) {
	for range recordLooks {
		if r.busy || len(r.queue) == 0 || r.now().Before(r.next) {
			return
		}
		key := r.queue[0]
		r.queue = r.queue[1:]
		if turn := r.turns[key]; turn != nil && turn.queued { // Otherwise it has gone meanwhile.
			turn.queued = false
			r.record(ctx, key, turn)
		}
	}
}

// record writes what the record of a workload lacks, unless that is nothing, or the workload has something else to do. Then it is looked at again.
func (r *recorder) record(ctx context.Context, key workload.Key, turn *recordTurn) {
	w := r.index.Get(key)
	if w == nil || r.isUnsettled(key) {
		return
	}
	write, needed := plan.Note(w, r.decider.decideAll(w), false)
	turn.lacking = needed
	if !needed {
		return
	}
	write.Version = w.Version
	turn.due = r.now().Add(turn.backoff.Step())
	if w.IsRecordLost() {
		turn.lostDue = r.now().Add(turn.lost.Step())
		turn.due = turn.lostDue
	}
	note := r.note(ctx, w, "what the record lacks", write, func(context.Context, patchResult) { r.busy = false })
	if note == nil {
		return
	}
	r.busy, r.next, turn.wrote = true, r.now().Add(recordPause), r.now()
	note.background = true
	r.patcher.start(ctx, note)
}
