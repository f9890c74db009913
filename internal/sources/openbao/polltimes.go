package openbao

import (
	"sync"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

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
