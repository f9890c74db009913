package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/workload"
)

// pauseShown is how long a pause that has ended stays noted on a workload, so that whoever sees the roll also sees what it has waited for.
const pauseShown = 10 * time.Second

// reviewPause looks for the note of a pause on a workload that has changed or gone. If someone has paused the Deployment itself, as Reloader does, it
// is theirs to end that.
func (n *notes) reviewPause(key workload.Key) {
	w := n.index.Get(key)
	if w == nil || w.Pause.Begun.IsZero() || w.IsPausedBySomeone() {
		delete(n.paused, key)
	} else if _, known := n.paused[key]; !known {
		n.paused[key] = time.Time{}
	}
}

// beginPause notes that a pause has begun. If that fails, or someone removes the note, this leader still knows of the pause, and tries again when the
// workload changes, at most once a minute.
func (n *notes) beginPause(ctx context.Context, w *workload.Workload, p *pending) {
	if now := n.now(); now.Sub(p.pauseAsked) >= noteRetry {
		p.pauseAsked = now
		n.send(ctx, w, "the beginning of a pause", workload.Write{PausedAt: p.rollsSince}, task{})
	}
}

// endPauses removes the notes of pauses that are over.
func (n *notes) endPauses(ctx context.Context) {
	now := n.now()
	for key, retry := range n.paused {
		w := n.index.Get(key)
		if w == nil || now.Before(retry) || now.Before(w.Pause.Begun.Add(w.Pause.Period+pauseShown)) {
			continue
		}
		if !n.patcher.busy(key) && n.debounce.byKey[key] == nil && n.patcher.hasRoom(key.Namespace) {
			n.paused[key] = now.Add(noteRetry)
			n.send(ctx, w, "the end of a pause", workload.Write{EndsPause: true}, task{})
		}
	}
}
