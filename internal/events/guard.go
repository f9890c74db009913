package events

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/wait"
)

// StreamGuard compares the streams with what is required, again and again. Make one with NewStreamGuard.
type StreamGuard struct {
	js      jetstream.JetStream
	cluster string
	logger  *slog.Logger
	// declared are the streams as Declare makes them. None: an operator declares them, and may choose what differences does not compare.
	declared []jetstream.StreamConfig
	now      func() time.Time
	// said is when a field that stays wrong was last logged.
	said map[string]time.Time
}

// sayAgain is after how long a fault that stays is logged again.
const sayAgain = time.Hour

// remedy is what to do about a field that a server does not take back.
const remedy = "back up the stream and delete it, then restart the actuator, which declares it again, and the watcher, which fills it"

// NewStreamGuard returns a guard of the streams of a cluster. Declared are those that it keeps as they are given, in every field. Without any it
// only warns of what is not as the programs of the cluster require: they have no permission to change the streams of an operator. A nil logger
// discards.
func NewStreamGuard(js jetstream.JetStream, cluster string, declared []jetstream.StreamConfig, logger *slog.Logger) *StreamGuard {
	return &StreamGuard{
		js: js, cluster: cluster, logger: orDiscard(logger), declared: declared, now: time.Now,
		said: make(map[string]time.Time),
	}
}

// Run compares after each interval, until ctx is done.
func (g *StreamGuard) Run(ctx context.Context, interval time.Duration) {
	_ = wait.PollUntilContextCancel(ctx, interval, false, func(ctx context.Context) (bool, error) {
		g.compare(ctx)
		return false, nil
	})
}

// compare compares all streams once.
func (g *StreamGuard) compare(ctx context.Context) {
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

// keep compares a stream, and repairs it.
func (g *StreamGuard) keep(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := g.js.Stream(ctx, want.Name)
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	want = keepTTL(have, want)
	wrong := streamDifferences(have, want)
	if len(wrong) == 0 {
		return nil
	}
	if isShrunk(have.MaxBytes, want.MaxBytes) {
		want.MaxBytes = have.MaxBytes
	}
	stream, err = g.js.UpdateStream(ctx, want)
	if _, refused := errors.AsType[*jetstream.APIError](err); refused {
		stream, err = g.js.UpdateStream(ctx, irrevocable(have, want))
	}
	left := make(map[string]bool)
	if err == nil {
		have = stream.CachedInfo().Config
	}
	for _, difference := range streamDifferences(have, want) {
		left[difference.field] = true
	}
	for _, d := range wrong {
		about := []any{"stream", want.Name, "field", d.field, "found", d.found, "required", d.required}
		switch {
		case !left[d.field]:
			g.logger.WarnContext(ctx, "stream was not as required, and is now", about...)
		case g.isNew(want.Name + d.field):
			g.logger.ErrorContext(ctx, "stream is not as required, and cannot be repaired", append(about, "remedy", remedy)...)
		}
	}
	return err
}

// isNew reports whether something was not logged within the last hour, and notes that it is logged now.
func (g *StreamGuard) isNew(what string) bool {
	if at, said := g.said[what]; said && g.now().Sub(at) < sayAgain {
		return false
	}
	g.said[what] = g.now()
	return true
}
