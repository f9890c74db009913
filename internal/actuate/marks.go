package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// markRetry is how long after an attempt to correct the mark of a workload the next one is made.
const markRetry = time.Minute

// marks writes into the marks of workloads that their last rollouts have failed, or have recovered, so that the next leader knows.
type marks struct {
	notes
	peers *failedPeers
	// tried is when a mark was last sent, for workloads whose marks are to be corrected.
	tried map[workload.Key]time.Time
}

// correct corrects the mark of a workload, and returns false if it sends no patch. Done, which may be nil, is called when the patch is finished, also
// if it has failed.
func (m *marks) correct(ctx context.Context, key workload.Key, done func(context.Context, patchResult)) bool {
	w := m.index.Get(key)
	if m.dryRun || w == nil {
		delete(m.tried, key)
		return false
	}
	last, differs := m.of(w)
	switch {
	case !differs:
		delete(m.tried, key)
		return false
	case w.Unserved || m.patcher.draining || m.patcher.busy(key) || m.now().Sub(m.tried[key]) < markRetry:
		return false
	}
	note := m.note(ctx, w, "what has become of the last roll", workload.Write{Last: &last}, done)
	if note == nil {
		return false
	}
	m.tried[key] = m.now()
	note.background = true // Others wait for it.
	m.patcher.start(ctx, note)
	return true
}

// of returns the mark that a workload should have, and whether it has another one.
func (m *marks) of(w *workload.Workload) (last workload.Last, differs bool) {
	last = w.Last
	failed, hasFailed := m.peers.keys[w.Key()]
	switch {
	case !w.AtLast():
		return last, false
	case hasFailed && last.Failed == "" && last.Revision == failed.outcome.Revision:
		last.Failed, last.Since = failed.outcome.Reason, failed.outcome.Time
		return last, true
	case !hasFailed && last.Failed != "" && w.Progress.State == workload.Complete:
		last.With, last.Failed, last.Since = nil, "", time.Time{}
		return last, true
	}
	return last, false
}
