package events

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// heartbeat keeps in-flight messages from being redelivered: it extends their ack wait until they are finished. One
// goroutine serves all messages of a consumer.
type heartbeat struct {
	mu       sync.Mutex
	inFlight map[jetstream.Msg]struct{}
}

func newHeartbeat() *heartbeat { return &heartbeat{inFlight: make(map[jetstream.Msg]struct{})} }

func (h *heartbeat) add(msg jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight[msg] = struct{}{}
}

// remove stops the heartbeat of the message. Nothing is sent for it after remove returns.
func (h *heartbeat) remove(msg jetstream.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inFlight, msg)
}

// run sends heartbeats until ctx is done.
func (h *heartbeat) run(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.beat()
		}
	}
}

func (h *heartbeat) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for msg := range h.inFlight {
		// A heartbeat that is lost costs at most a redelivery.
		_ = msg.InProgress()
	}
}
