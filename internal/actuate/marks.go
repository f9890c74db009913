package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// mark writes into the mark of a workload that its last rollout has failed, or has recovered, if the mark does not say so, and returns false if it
// sends no patch. Done, which may be nil, is called when the patch is finished, also if it has failed.
func (n *notes) mark(ctx context.Context, key workload.Key, done func(context.Context, patchResult)) bool {
	w := n.index.Get(key)
	last, differs := n.markOf(w)
	if !differs {
		delete(n.marked, key)
		return false
	}
	if w.Unserved || n.patcher.busy(key) || n.now().Sub(n.marked[key]) < noteRetry {
		return false
	}
	// Others wait for it, so it is sent in the background.
	isSent := n.send(ctx, w, "what has become of the last roll", workload.Write{Last: &last}, task{background: true, finish: done})
	if isSent {
		n.marked[key] = n.now()
	}
	return isSent
}

// markOf returns the mark that a workload should have, and whether it has another one. The workload is nil if it is gone.
func (n *notes) markOf(w *workload.Workload) (last workload.Last, differs bool) {
	if w == nil || !w.AtLast() {
		return workload.Last{}, false
	}
	last = w.Last
	switch failed := n.peers.keys[w.Key()]; {
	case failed != nil && last.Failed == "" && last.Revision == failed.outcome.Revision:
		last.Failed, last.Since = failed.outcome.Reason, failed.outcome.Time
		return last, true
	case failed == nil && last.Failed != "" && w.Progress.State == workload.Complete:
		last.With, last.Failed, last.Since = nil, "", time.Time{}
		return last, true
	}
	return last, false
}
