package actuate

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/plan"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// recordPause is the shortest time between the starts of two records: 20 a second.
	recordPause = 50 * time.Millisecond
	// renewPause is the shortest time between two records of a workload that repeatedly comes to want other sources.
	renewPause = time.Minute
	// ackedTimeout bounds the question which events are acked.
	ackedTimeout = 10 * time.Second
	// recordMemory is how long a workload with a complete record is remembered, in case someone removes the record again.
	recordMemory = 12 * time.Hour
)

// recordBackoff returns the delays between attempts to complete the record of one workload. They grow beyond the interval of any GitOps
// controller that removes the record whenever it reconciles.
func recordBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 3, Jitter: 0.1, Steps: 20, Cap: 6 * time.Hour}
}

// lookBackoff returns the delays between looks at a workload for which nothing can be recorded yet, because it has something else to do. A look
// costs a request to NATS.
func lookBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 3, Jitter: 0.1, Steps: 20, Cap: 10 * time.Minute}
}

// recorder completes the records of workloads that have no entry for a source, without rolling them, and writes those again that others have removed
// or replaced. It works slowly on one workload at a time, and only on those that have nothing else to do. The state of the workloads shows what is
// left to do, so nothing is lost with the leader, except a record that is not written again by then.
type recorder struct {
	notes
	// isUnsettled reports whether a workload has pending changes, a rollout in progress, or a roll to be corrected, or its kind is not served.
	isUnsettled func(workload.Key) bool
	// isDecided reports whether an event is decided, given whether it was acked.
	isDecided func(last events.Change, acked bool) bool
	acks      *acks
	// lag returns which events are delivered and acked.
	lag    func(context.Context) (events.Lag, error)
	denied denials
	state  *state

	turns map[workload.Key]*recordTurn
	queue []workload.Key
	// busy says that a question or a patch is under way. next is when another may begin.
	busy    bool
	next    time.Time
	answers chan recordable
	running sync.WaitGroup
}

// recordable is what is known of the sources for which a workload has no record.
type recordable struct {
	workload workload.Key
	// last are the last events of these sources. lag says which events were delivered and acked after that, or err why nobody knows.
	last []*events.Delivery
	lag  events.Lag
	err  error
}

// recordTurn is a workload whose record is to be completed, or was.
type recordTurn struct {
	// lacking says that the record was incomplete when the workload was last looked at. queued says that the workload is in the queue.
	lacking, queued bool
	// due is when it may be put into the queue again.
	due time.Time
	// wrote is when the last patch was sent.
	wrote time.Time
	// absent are the sources for which the last look has found no event, perhaps because nobody watches them.
	absent []events.Source
	// backoff has the delays after patches, looks those after looks that led to no patch, and waits those after looks that found no event at all.
	backoff, looks, waits wait.Backoff
}

// isLacking reports whether something is to be written into the record of a workload.
func isLacking(w *workload.Workload) bool { return w.IsRecordLost() || len(w.Unrecorded()) > 0 }

// resume looks at all workloads.
func (r *recorder) resume() {
	for _, w := range r.index.All() {
		r.review(w.Key())
	}
}

// renew shortens the wait of a workload that has come to want another source.
func (r *recorder) renew(key workload.Key) {
	if turn := r.turns[key]; turn != nil && !turn.queued {
		turn.looks, turn.waits = lookBackoff(), recordBackoff()
		if soon := turn.wrote.Add(renewPause); soon.Before(turn.due) {
			turn.due = soon
		}
	}
	r.review(key)
}

// arrived shortens the wait of a workload if the last look found no event for a source that has one now.
func (r *recorder) arrived(key workload.Key, source events.Source) {
	turn := r.turns[key]
	if turn == nil || !slices.Contains(turn.absent, source) {
		return
	}
	turn.absent = slices.DeleteFunc(turn.absent, func(s events.Source) bool { return s == source })
	r.renew(key)
}

// review looks at a workload that has changed or gone.
func (r *recorder) review(key workload.Key) {
	if r.dryRun {
		return
	}
	w, turn := r.index.Get(key), r.turns[key]
	switch {
	case w == nil:
		delete(r.turns, key)
		delete(r.denied, key)
		return
	case !isLacking(w):
		delete(r.denied, key)
		if turn != nil {
			turn.lacking = false
		}
		return
	case turn == nil:
		turn = &recordTurn{backoff: recordBackoff(), looks: lookBackoff(), waits: recordBackoff()}
		r.turns[key] = turn
	}
	turn.lacking = true
	r.enqueue(key, turn)
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

// advance begins with the next workload, if it is time.
func (r *recorder) advance(ctx context.Context) {
	for !r.busy && len(r.queue) > 0 && !r.now().Before(r.next) {
		key := r.queue[0]
		r.queue = r.queue[1:]
		turn, w := r.turns[key], r.index.Get(key)
		if turn == nil || !turn.queued {
			continue // It has gone meanwhile.
		}
		turn.queued = false
		if w == nil || !isLacking(w) {
			turn.lacking = false
			continue
		}
		if r.isUnsettled(key) {
			r.lookLater(turn)
			continue
		}
		found := r.look(w, turn)
		if len(found.last) == 0 && !w.IsRecordLost() {
			turn.due = r.now().Add(turn.waits.Step()) // Unless an event comes.
			continue
		}
		r.busy, r.next = true, r.now().Add(recordPause)
		r.running.Go(func() {
			bounded, cancel := context.WithTimeout(ctx, ackedTimeout)
			defer cancel()
			found.lag, found.err = r.lag(bounded)
			select {
			case r.answers <- found:
			case <-ctx.Done():
			}
		})
	}
}

// look looks for the last events of the sources for which a workload has no record.
func (r *recorder) look(w *workload.Workload, turn *recordTurn) recordable {
	found := recordable{workload: w.Key()}
	turn.absent = nil
	for _, source := range w.Unrecorded() {
		if last := r.state.Recall(source, r.now()); last != nil {
			found.last = append(found.last, last)
		} else {
			turn.absent = append(turn.absent, source)
		}
	}
	return found
}

// answered writes what was found for a workload into its record.
func (r *recorder) answered(ctx context.Context, found recordable) {
	r.busy = false
	w, turn := r.index.Get(found.workload), r.turns[found.workload]
	if w == nil || turn == nil {
		return
	}
	if found.err == nil {
		r.acks.observe(found.lag)
	} else {
		r.log.DebugContext(ctx, "cannot ask which events are acked", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", found.err)
	}
	entries := r.entries(w, found)
	if len(entries) == 0 && !w.IsRecordLost() || r.isUnsettled(found.workload) {
		r.lookLater(turn)
		return
	}
	r.postpone(turn) // Before the answer: the watch may show the workload, which still lacks what has no event, before that.
	note := r.note(ctx, w, workload.Write{Rolled: entries, Version: w.Version}, r.finish)
	if note == nil {
		return
	}
	r.busy, turn.wrote, turn.looks = true, r.now(), lookBackoff()
	note.background = true
	r.patcher.start(ctx, note)
}

// entries returns what to record for a workload that has no pending changes. An event has been decided for it if the event was acked, or was taken
// here: it may take long to be acked, because other workloads wait with it.
func (r *recorder) entries(w *workload.Workload, found recordable) map[string]workload.RolledFor {
	entries := make(map[string]workload.RolledFor)
	for _, last := range found.last {
		change := last.Change
		isAcked := found.err == nil && r.acks.has(last.Seq, found.lag)
		if !r.isDecided(change, isAcked) || r.denied.has(w.Key(), change) {
			continue
		}
		if record, ok := plan.Baseline(w, change); ok {
			entries[change.Source.String()] = record
		}
	}
	return entries
}

// finish takes the result of a patch.
func (r *recorder) finish(ctx context.Context, result patchResult) {
	r.busy = false
	id := result.task.workload.ID
	switch {
	case result.err == nil:
		r.metrics.patched(ctx, id, false)
	case !kube.HasChanged(result.err):
		// It does not count as a failed patch: no roll is late because of it, and no one need look.
		r.log.WarnContext(ctx, "completing the record failed; retrying later", "workload", id.String(), "namespace", id.Namespace, "err", result.err)
	}
}

// lookLater makes a workload wait for which nothing could be recorded, longer than the last time.
func (r *recorder) lookLater(turn *recordTurn) { turn.due = r.now().Add(turn.looks.Step()) }

// postpone makes a workload wait whose record is being written, longer than the last time.
func (r *recorder) postpone(turn *recordTurn) {
	turn.due = r.now().Add(turn.backoff.Step())
}
