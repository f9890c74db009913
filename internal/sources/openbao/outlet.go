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

// outlet passes observations to the sink, and remembers when the last complete poll of each mount began. It is safe for concurrent use.
type outlet struct {
	sink   func(Observation) bool
	status *status
	client *client

	mu     sync.Mutex
	polled map[mountName]time.Time // by the store's clock
}

func newOutlet(sink func(Observation) bool, s *status, c *client) *outlet {
	return &outlet{sink: sink, status: s, client: c, polled: map[mountName]time.Time{}}
}

// emit offers an observation until the sink accepts it or ctx is done, and at least once.
func (out *outlet) emit(ctx context.Context, o Observation) {
	if !out.canName(ctx, o.Path) {
		return
	}
	out.mu.Lock()
	if polled, ok := out.polled[mountName{o.Path.Namespace, o.Path.Mount}]; ok {
		o.PolledBefore = polled
	}
	out.mu.Unlock()
	delays := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: math.MaxInt, Cap: time.Second}
	for !out.sink(o) {
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

// notePoll records that a mount was read completely. began is when that began, by our clock.
func (out *outlet) notePoll(name mountName, began time.Time) {
	began = began.Add(out.client.skew())
	out.mu.Lock()
	defer out.mu.Unlock()
	out.polled[name] = began
}
