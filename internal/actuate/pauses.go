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
	// pauseRetry is the delay before the next patch after one that failed to write or remove the note.
	pauseRetry = time.Minute
	// pauseLeft is how long after the end of its pause a Deployment that is still paused is taken for one that Reloader will not resume.
	pauseLeft = time.Minute
)

// pauses notes on the workloads that a pause has begun, so that the next leader knows it, and removes the note once the pause is over. Which notes
// are to be removed is known from the workloads themselves.
type pauses struct {
	notes

	open map[workload.Key]openPause
}

// openPause says when a pause ends, and when to remove its note, or when to report the Deployment if someone has paused that itself. Due is zero once
// that is reported.
type openPause struct {
	end, due time.Time
	paused   bool
}

// review reviews a workload that has changed or gone. If someone has paused the Deployment itself, as Reloader does, it is theirs to end that.
func (p *pauses) review(key workload.Key) {
	w := p.index.Get(key)
	if p.dryRun || w == nil || w.Pause.Begun.IsZero() || w.Pause.Period == 0 && w.IsPausedBySomeone() {
		delete(p.open, key)
		return
	}
	end, paused, shown := w.Pause.Begun.Add(w.Pause.Period), w.IsPausedBySomeone(), pauseShown
	if paused {
		shown = pauseLeft
	}
	if was := p.open[key]; !was.end.Equal(end) || was.paused != paused {
		p.open[key] = openPause{end: end, due: end.Add(shown), paused: paused}
	}
}

// begin notes that a pause has begun. If that fails, or someone removes the note, this leader still knows of the pause, and tries again when the
// workload changes, at most once a minute.
func (p *pauses) begin(ctx context.Context, w *workload.Workload, of *pending) {
	if now := p.now(); now.Sub(of.pauseAsked) >= pauseRetry {
		of.pauseAsked = now
		p.send(ctx, w, "the beginning of a pause", workload.Write{PausedAt: of.rollsSince}, nil)
	}
}

// advance removes the notes of pauses that are over, and reports the Deployments that someone has left paused.
func (p *pauses) advance(ctx context.Context) {
	for key, pause := range p.open {
		w := p.index.Get(key)
		switch {
		case w == nil || pause.due.IsZero() || p.now().Before(pause.due):
		case pause.paused:
			p.open[key] = openPause{end: pause.end, paused: true}
			p.report(ctx, w)
		case !p.patcher.busy(key) && p.debounce.byKey[key] == nil && p.patcher.hasRoom(key.Namespace):
			p.open[key] = openPause{end: pause.end, due: p.now().Add(pauseRetry)}
			p.send(ctx, w, "the end of a pause", workload.Write{EndsPause: true}, nil)
		}
	}
}

// report reports that a Deployment is still paused after its pause. Reloader keeps the end of a pause only in its memory, so one that is stopped
// within the pause resumes nothing.
func (p *pauses) report(ctx context.Context, w *workload.Workload) {
	p.log.WarnContext(ctx, "deployment is still paused after its pause-period; its pods are not replaced until someone resumes it",
		"workload", w.ID.String(), "namespace", w.ID.Namespace, "since", w.Pause.Begun)
	p.kube.write(ctx, w.ID, corev1.EventTypeWarning, "StillPaused", "it is paused, although its pause-period is over, so its pods are not "+
		"replaced until someone resumes it with kubectl rollout resume; Reloader leaves it so if it is stopped within the period", nil)
}
