package main

import (
	"context"
	"sync"
	"time"
)

// outage has the results of clusters that come back after a while.
type outage struct {
	// away is the number of disconnected clusters, missed the number of events they then had to publish, and catchUp how long that
	// took.
	away, missed int
	catchUp      time.Duration
}

// comeBack takes half of the clusters away, has some of their sources change, and brings them back all at once, as watchers
// that start: each reads the state of its cluster from the stream, and says what differs.
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

// slowest is how long the slowest of some took.
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
