package events

import (
	"context"
	"sync"
	"time"
)

// pacer tells the server that deliveries which are in flight are being worked on, so that they are not delivered a
// second time. One goroutine does it for all of them.
type pacer struct {
	mu    sync.Mutex
	under map[*Delivery]struct{}
}

func newPacer() *pacer { return &pacer{under: make(map[*Delivery]struct{})} }

func (p *pacer) watch(d *Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under[d] = struct{}{}
}

// forget returns when nothing more is sent for the delivery.
func (p *pacer) forget(d *Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.under, d)
}

// run sends the signs of life until ctx is done.
func (p *pacer) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.beat()
		}
	}
}

func (p *pacer) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for d := range p.under {
		// Without a connection there is nobody to tell; the event will be delivered again.
		_ = d.msg.InProgress()
	}
}
