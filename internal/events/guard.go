package events

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"
)

// StreamGuard compares the streams periodically with what is required. Create one with NewStreamGuard.
type StreamGuard struct {
	js      jetstream.JetStream
	cluster string
	logger  *slog.Logger
	// declared has the streams as Declare declares them. If empty, an operator declares them, and is free to choose the fields that differences
	// does not compare.
	declared []jetstream.StreamConfig
	now      func() time.Time
	// said is when a field that stays wrong was last logged.
	said map[string]time.Time
}

// sayAgain is how often a persisting fault is logged.
const sayAgain = time.Hour

// remedy is what to do about a field that a server cannot revert. No user of the embedded NATS may delete a stream.
const remedy = "while the watcher runs, scale the actuator to 0, delete the claims of its volumes and scale it up again: " +
	"see A stream cannot be repaired in docs/operations.md"

// NewStreamGuard returns a StreamGuard for the streams of a cluster. It restores the streams in declared in every field. If declared is empty, it
// only warns about streams that do not meet the requirements of the programs, which have no permission to change the streams of an operator. A nil
// logger discards.
func NewStreamGuard(js jetstream.JetStream, cluster string, declared []jetstream.StreamConfig, logger *slog.Logger) *StreamGuard {
	return &StreamGuard{
		js: js, cluster: cluster, logger: orDiscard(logger), declared: declared, now: time.Now,
		said: make(map[string]time.Time),
	}
}

// Run compares after each interval, until ctx is done.
func (g *StreamGuard) Run(ctx context.Context, interval time.Duration) {
	_ = wait.PollUntilContextCancel(ctx, interval, false, func(ctx context.Context) (bool, error) {
		g.Compare(ctx)
		return false, nil
	})
}

// Compare compares all streams once, repairs what it can and logs what it finds. It must not be called while Run runs.
func (g *StreamGuard) Compare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, guardInterval)
	defer cancel()
	if len(g.declared) == 0 {
		if _, err := verify(ctx, g.js, g.cluster); err != nil && ctx.Err() == nil && !IsSilence(err) && g.isNew(err.Error()) {
			g.logger.WarnContext(ctx, "streams are not as required; their operator must declare them again", "err", err)
		}
		return
	}
	for _, want := range g.declared {
		if err := g.keep(ctx, want); err != nil && ctx.Err() == nil && !IsSilence(err) && g.isNew(want.Name+err.Error()) {
			g.logger.WarnContext(ctx, "stream cannot be kept as required", "stream", want.Name, "err", err)
		}
	}
}

// keep compares and repairs a stream.
func (g *StreamGuard) keep(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := g.js.Stream(ctx, want.Name)
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	want, now, err := repair(ctx, g.js, have, want)
	if err != nil {
		return err
	}
	left := make(map[string]bool)
	for _, difference := range streamDifferences(now, want) {
		left[difference.field] = true
	}
	for _, d := range streamDifferences(have, want) {
		about := []any{"stream", want.Name, "field", d.field, "found", d.found, "required", d.required}
		switch {
		case !left[d.field]:
			g.logger.WarnContext(ctx, "stream was not as required, and is now", about...)
		case g.isNew(want.Name + d.field):
			g.logger.ErrorContext(ctx, "stream is not as required, and cannot be repaired", append(about, "remedy", remedy)...)
		}
	}
	return nil
}

// isNew reports whether something was not logged within sayAgain. If so, it records that it is logged now.
func (g *StreamGuard) isNew(what string) bool {
	if at, said := g.said[what]; said && g.now().Sub(at) < sayAgain {
		return false
	}
	g.said[what] = g.now()
	return true
}
