package openbao

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/internal/backoff"
	"github.com/keyturn/keyturn/internal/events"
)

// outlet passes observations to the sink.
type outlet struct {
	sink   func(Observation) bool
	status *status
	polled *pollTimes // nil for what the audit log shows
}

// offerBackoff returns the delays between two offers to a sink that has no room.
func offerBackoff() wait.Backoff {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: time.Second}
}

// emit offers an observation until the sink accepts it or ctx is done, and at least once.
func (out *outlet) emit(ctx context.Context, o Observation) {
	if !out.canName(ctx, o.Path) {
		return
	}
	if out.polled != nil {
		o.PolledBefore = out.polled.of(o.Path)
	}
	for delays := offerBackoff(); !out.sink(o); {
		if !backoff.Sleep(ctx, delays.Step()) {
			return
		}
	}
}

// canName reports whether events can name a path, and records that they cannot. Such a path is too long, or is not valid text.
func (out *outlet) canName(ctx context.Context, path events.StorePath) bool {
	_, err := path.Source().StorePath()
	if err != nil {
		out.status.noteFailure(ctx, "paths that events cannot name", err)
	}
	return err == nil
}

// pollTimes remembers when the last complete poll of each mount began, by the store's clock. It is safe for concurrent use.
type pollTimes struct {
	client *client

	mu    sync.Mutex
	began map[mountName]time.Time
}

func newPollTimes(c *client) *pollTimes {
	return &pollTimes{client: c, began: map[mountName]time.Time{}}
}

// complete records that a mount was read completely. began is when that began, by our clock.
func (p *pollTimes) complete(name mountName, began time.Time) {
	began = began.Add(p.client.skew())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began[name] = began
}

// of returns when the last complete poll of the mount of a path began, or zero.
func (p *pollTimes) of(path events.StorePath) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began[mountName{path.Namespace, path.Mount}]
}
