package main

import (
	"context"
	"sync"
	"time"
)

// outage has the results of clusters that reconnect after a while.
type outage struct {
	// away is the number of disconnected clusters, missed the number of events that they had to publish afterwards, and catchUp
	// how long that took.
	away, missed int
	catchUp      time.Duration
}

// comeBack disconnects half of the clusters, changes some of their sources, and reconnects them all at once, like starting
// watchers: each reads the state of its cluster from the stream, and publishes what differs.
func comeBack(ctx context.Context, h *hub, clusters []*cluster, s settings) (outage, error) {
	away := clusters[:len(clusters)/2]
	for _, c := range away {
		c.disconnect()
	}
	changed := max(1, int(float64(s.sources)*s.changed))
	o := outage{away: len(away), missed: len(away) * changed}
	var connected, read slowest
	begun := time.Now()
	err := each(away, func(c *cluster) error {
		if err := c.connect(ctx, h); err != nil {
			return err
		}
		connected.note(begun)
		if err := c.readState(ctx); err != nil {
			return err
		}
		read.note(begun)
		return c.publish(ctx, some(s.sources, changed), func(time.Duration) {})
	})
	o.catchUp = time.Since(begun)
	progress("the last of %d clusters was connected after %s, had its state after %s, and was done after %s",
		o.away, connected.round(), read.round(), o.catchUp.Round(time.Millisecond))
	return o, err
}

// slowest records the longest duration.
type slowest struct {
	mu   sync.Mutex
	took time.Duration
}

func (s *slowest) note(begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = max(s.took, time.Since(begun))
}

func (s *slowest) round() time.Duration { return s.took.Round(time.Millisecond) }
