package openbao

import (
	"context"
	"log/slog"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

// maxNewcomers is how many new paths per minute are accepted from audit lines alone. Each takes room on the stream and in memory, and whoever can
// send lines can invent paths.
const maxNewcomers = 1000

// newcomers bounds the new paths that are accepted from audit lines that the store cannot confirm. It belongs to one goroutine.
type newcomers struct {
	catalog catalog
	metrics *metrics
	log     *slog.Logger
	now     func() time.Time

	since time.Time
	count int
}

// admit reports whether a path may be observed.
func (n *newcomers) admit(ctx context.Context, path events.StorePath) bool {
	if !n.catalog.isNew(path) {
		return true
	}
	if now := n.now(); now.Sub(n.since) >= time.Minute {
		n.since, n.count = now, 0
	}
	if n.count++; n.count <= maxNewcomers {
		return true
	}
	if n.count == maxNewcomers+1 {
		n.log.WarnContext(ctx, "too many new paths in audit lines; ignoring further ones for a minute", "limit", maxNewcomers)
	}
	n.metrics.countLine(ctx, n.catalog.store, excess)
	return false
}
