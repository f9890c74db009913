package actuate

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/workload"
)

const (
	// pauseShown is how long a workload says of a pause that is over: those who see the roll see what it has waited for.
	pauseShown = 10 * time.Second
	// pauseRetry is how long after a patch that wrote nothing, or took nothing away, the next one is sent.
	pauseRetry = time.Minute
)

// pauses writes on the workloads that a pause has begun, so that the next leader knows it, and takes that away once it is over. What there is to take
// away is known from the workloads.
type pauses struct {
	dryRun    bool
	notes     notes
	index     *index
	patcher   *patcher
	gathering *debounce
	metrics   *metrics
	log       *slog.Logger
	now       func() time.Time

	open map[workload.Key]openPause
}

// openPause is when a pause ends, and when to take away what says so.
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
		p.open[key] = openPause{end, end.Add(pauseShown)}
	}
}

// begin writes that a pause has begun. If that fails, or someone takes it away, this leader knows it nevertheless, and tries again when the workload
// has changed, at most once in a minute.
func (p *pauses) begin(ctx context.Context, w *workload.Workload, of *pending) {
	if now := p.now(); of.pauseAsked.IsZero() || now.Sub(of.pauseAsked) >= pauseRetry {
		of.pauseAsked = now
		p.write(ctx, w, workload.Write{PausedAt: of.rollsSince})
	}
}

// advance takes away what pauses have left that are over.
func (p *pauses) advance(ctx context.Context) {
	for key, pause := range p.open {
		if p.now().Before(pause.due) || p.patcher.busy(key) || p.gathering.byKey[key] != nil || !p.patcher.hasRoom(key.Namespace) {
			continue
		}
		p.open[key] = openPause{pause.end, p.now().Add(pauseRetry)}
		if w := p.index.get(key); w != nil {
			p.write(ctx, w, workload.Write{EndsPause: true})
		}
	}
}

func (p *pauses) write(ctx context.Context, w *workload.Workload, write workload.Write) {
	if note := p.notes.make(ctx, w, write, p.finish); note != nil {
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
		p.log.WarnContext(ctx, "writing the beginning or the end of a pause failed", "workload", id.String(), "namespace", id.Namespace,
			"err", result.err)
	}
}
