package actuate

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// pauseShown is how long a pause that has ended stays noted on a workload, so that whoever sees the roll also sees what it has waited for.
	pauseShown = 10 * time.Second
	// pauseRetry is the delay before the next patch after one that failed to write or remove the note.
	pauseRetry = time.Minute
)

// pauses notes on the workloads that a pause has begun, so that the next leader knows it, and removes the note once the pause is over. Which notes
// are to be removed is known from the workloads themselves.
type pauses struct {
	notes

	open map[workload.Key]openPause
}

// openPause says when a pause ends, and when to remove its note.
type openPause struct{ end, due time.Time }

// resume looks at all workloads.
func (p *pauses) resume() {
	for _, w := range p.index.All() {
		p.review(w.Key())
	}
}

// review reviews a workload that has changed or gone. If someone has paused the Deployment itself, as Reloader does, it is theirs to end that.
func (p *pauses) review(key workload.Key) {
	w := p.index.Get(key)
	if p.dryRun || w == nil || w.Pause.Begun.IsZero() || w.IsPausedBySomeone() {
		delete(p.open, key)
		return
	}
	if end := w.Pause.Begun.Add(w.Pause.Period); !p.open[key].end.Equal(end) {
		p.open[key] = openPause{end, end.Add(pauseShown)}
	}
}

// begin notes that a pause has begun. If that fails, or someone removes the note, this leader still knows of the pause, and tries again when the
// workload changes, at most once a minute.
func (p *pauses) begin(ctx context.Context, w *workload.Workload, of *pending) {
	if now := p.now(); of.pauseAsked.IsZero() || now.Sub(of.pauseAsked) >= pauseRetry {
		of.pauseAsked = now
		p.send(ctx, w, workload.Write{PausedAt: of.rollsSince}, p.finish)
	}
}

// advance removes the notes of pauses that are over.
func (p *pauses) advance(ctx context.Context) {
	for key, pause := range p.open {
		if p.now().Before(pause.due) || p.patcher.busy(key) || p.gathering.byKey[key] != nil || !p.patcher.hasRoom(key.Namespace) {
			continue
		}
		p.open[key] = openPause{pause.end, p.now().Add(pauseRetry)}
		if w := p.index.Get(key); w != nil {
			p.send(ctx, w, workload.Write{EndsPause: true}, p.finish)
		}
	}
}

// finish takes the result of a patch.
func (p *pauses) finish(ctx context.Context, result patchResult) {
	id := result.roll.workload.ID
	switch {
	case result.err == nil:
		p.metrics.patched(ctx, id, false)
	case !kube.HasChanged(result.err):
		p.metrics.patchFailed(ctx, id.Kind)
		p.log.WarnContext(ctx, "writing the beginning or the end of a pause failed", "workload", id.String(), "namespace", id.Namespace,
			"err", result.err)
	}
}
