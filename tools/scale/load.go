package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// load has the results of publishing changes without a pause.
type load struct {
	// sustained is the rate at which events were stored, in events per second.
	sustained float64
	// median and late are the 50th and the 99th percentile of the time that one publication takes.
	median, late time.Duration
	// cores is how many cores each server has used during that time.
	cores float64
}

// sustain makes every cluster publish changes for a while.
func sustain(ctx context.Context, h *hub, clusters []*cluster, s settings) (load, error) {
	before, err := h.usage()
	if err != nil {
		return load{}, err
	}
	var mu sync.Mutex
	var times []time.Duration
	took := func(d time.Duration) {
		mu.Lock()
		times = append(times, d)
		mu.Unlock()
	}
	deadline := time.Now().Add(s.sustain)
	elapsed, err := timed(func() error {
		return each(clusters, func(c *cluster) error {
			for time.Now().Before(deadline) {
				// Publish only a few at a time, so that all clusters end together.
				if err := c.publish(ctx, some(s.sources, 2*workers), took); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return load{}, err
	}
	after, err := h.usage()
	if err != nil {
		return load{}, err
	}
	slices.Sort(times)
	return load{
		sustained: float64(len(times)) / elapsed.Seconds(),
		median:    times[len(times)/2], late: times[len(times)*99/100],
		cores: (after.cpu - before.cpu).Seconds() / elapsed.Seconds(),
	}, nil
}
