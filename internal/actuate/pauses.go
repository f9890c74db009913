package actuate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// pauseShown is how long a pause that has ended stays noted on a workload, so that whoever sees the roll also sees what it has waited for.
	pauseShown = 10 * time.Second
	// pauseLeft is how long after the end of its pause a Deployment that is still paused is taken for one that Reloader will not resume.
	pauseLeft = time.Minute
)

// openPause says when a pause ends, and when to remove its note, or when to report the Deployment if someone has paused that itself. Due is zero once
// that is reported.
type openPause struct {
	end, due time.Time
	paused   bool
}

// reviewPause looks for the note of a pause on a workload that has changed or gone. If someone has paused the Deployment itself, as Reloader does, it
// is theirs to end that.
func (n *notes) reviewPause(key workload.Key) {
	w := n.index.Get(key)
	if n.dryRun || w == nil || w.Pause.Begun.IsZero() || w.Pause.Period == 0 && w.IsPausedBySomeone() {
		delete(n.paused, key)
		return
	}
	end, paused, shown := w.Pause.Begun.Add(w.Pause.Period), w.IsPausedBySomeone(), pauseShown
	if paused {
		shown = pauseLeft
	}
	if was := n.paused[key]; !was.end.Equal(end) || was.paused != paused {
		n.paused[key] = openPause{end: end, due: end.Add(shown), paused: paused}
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

// endPauses removes the notes of pauses that are over, and reports the Deployments that someone has left paused.
func (n *notes) endPauses(ctx context.Context) {
	for key, pause := range n.paused {
		w := n.index.Get(key)
		switch {
		case w == nil || pause.due.IsZero() || n.now().Before(pause.due):
		case pause.paused:
			n.paused[key] = openPause{end: pause.end, paused: true}
			n.reportPaused(ctx, w)
		case !n.patcher.busy(key) && n.debounce.byKey[key] == nil && n.patcher.hasRoom(key.Namespace):
			n.paused[key] = openPause{end: pause.end, due: n.now().Add(noteRetry)}
			n.send(ctx, w, "the end of a pause", workload.Write{EndsPause: true}, task{})
		}
	}
}

// reportPaused reports that a Deployment is still paused after its pause. Reloader keeps the end of a pause only in its memory, so one that is
// stopped within the pause resumes nothing.
func (n *notes) reportPaused(ctx context.Context, w *workload.Workload) {
	n.log.WarnContext(ctx, "deployment is still paused after its pause-period; its pods are not replaced until someone resumes it",
		"workload", w.ID.String(), "namespace", w.ID.Namespace, "since", w.Pause.Begun)
	n.kube.write(ctx, w.ID, corev1.EventTypeWarning, "StillPaused", "it is paused, although its pause-period is over, so its pods are not "+
		"replaced until someone resumes it with kubectl rollout resume; Reloader leaves it so if it is stopped within the period", nil)
}
