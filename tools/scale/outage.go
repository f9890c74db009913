package main

import (
	"context"
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
	begun := time.Now()
	err := each(away, func(c *cluster) error {
		if err := c.connect(ctx, h); err != nil {
			return err
		}
		if err := c.readState(ctx); err != nil {
			return err
		}
		return c.publish(ctx, some(s.sources, changed), func(time.Duration) {})
	})
	o.catchUp = time.Since(begun)
	progress("the last of %d clusters was back after %s", o.away, o.catchUp.Round(time.Millisecond))
	return o, err
}
