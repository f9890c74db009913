package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// load has the results of changes that are published without a pause.
type load struct {
	// sustained is the rate at which they were stored, in events per second.
	sustained float64
	// median and late are how long one publication takes meanwhile: of a half, and of 99 of 100.
	median, late time.Duration
	// cores is how many cores each server has used meanwhile.
	cores float64
}

// sustain has every cluster publish changes for a time.
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
				// Few at a time, so that all end together.
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
