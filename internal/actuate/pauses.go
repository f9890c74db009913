package actuate

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

// pauseRetry is how long after a patch that ended no pause the next one is sent.
const pauseRetry = time.Minute

// pauses takes away what says that a workload has a pause, once that is over. What there is to do is known from the workloads.
type pauses struct {
	dryRun    bool
	kinds     workload.Kinds
	index     *index
	patcher   *patcher
	gathering *debounce
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time

	open map[workload.Key]openPause
}

// openPause is a pause that ends, and when to say so.
type openPause struct{ end, due time.Time }

// resume looks at all workloads.
func (p *pauses) resume() {
	for _, w := range p.index.all() {
		p.review(w.Key())
	}
}

// review looks at a workload that has changed or gone. Where someone has paused the Deployment itself, as Reloader does, its end is theirs.
func (p *pauses) review(key workload.Key) {
	w := p.index.get(key)
	if p.dryRun || w == nil || w.Pause.Begun.IsZero() || w.IsPausedBySomeone() {
		delete(p.open, key)
		return
	}
	if end := w.Pause.Begun.Add(w.Pause.Period); !p.open[key].end.Equal(end) {
		p.open[key] = openPause{end, end}
	}
}

// advance ends the pauses that are over. The next roll of a workload that has changes pending begins another.
func (p *pauses) advance(ctx context.Context) {
	for key, pause := range p.open {
		if p.now().Before(pause.due) || p.patcher.busy(key) || p.gathering.byKey[key] != nil || !p.patcher.hasRoom(key.Namespace) {
			continue
		}
		p.open[key] = openPause{pause.end, p.now().Add(pauseRetry)}
		w := p.index.get(key)
		k, known := p.kinds.Named(key.Kind)
		if w == nil || !known {
			continue
		}
		note, err := newNote(ctx, k, w, workload.Write{EndsPause: true}, p.now())
		if err != nil {
			p.log.ErrorContext(ctx, "no patch to end a pause", "workload", w.ID.String(), "namespace", w.ID.Namespace, "err", err)
			continue
		}
		note.endsPause = true
		p.patcher.start(ctx, note)
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
		p.log.WarnContext(ctx, "ending a pause failed; retrying", "workload", id.String(), "namespace", id.Namespace, "retry_in", pauseRetry,
			"err", result.err)
	}
}
