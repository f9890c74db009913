package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// row has the results for one number of clusters.
type row struct {
	clusters, sources int
	// fill is the rate at which new sources were stored on the stream, sustained that of later changes, in events per second.
	fill, sustained float64
	// median and late are how long one publication takes while changes are sustained: of a half, and of 99 of 100.
	median, late time.Duration
	// cores is how many cores each server has used meanwhile.
	cores float64
	// usage is what each server takes.
	usage usage
	// away is the number of disconnected clusters, missed the number of events they then had to publish, and catchUp how long that
	// took.
	away, missed int
	catchUp      time.Duration
	// retried is how many publications, and readings of the state, were made again, for the hub did not answer in time.
	retried int64
}

// measure goes through the sizes.
func measure(ctx context.Context, h *hub, s settings) (*report, error) {
	r := &report{settings: s}
	empty, err := h.usage()
	if err != nil {
		return nil, err
	}
	r.empty = empty
	var clusters []*cluster
	defer func() {
		for _, c := range clusters {
			c.disconnect()
		}
	}()
	for _, size := range s.sizes {
		begun := time.Now()
		fmt.Fprintf(os.Stderr, "%s: to %d clusters\n", begun.Format(time.TimeOnly), size)
		row := row{clusters: size, sources: size * s.sources}
		var joining []*cluster
		for number := len(clusters); number < size; number++ {
			joining = append(joining, newCluster(number, s.sources))
		}
		clusters = append(clusters, joining...)
		if err := each(joining, func(c *cluster) error { return c.connect(ctx, h.url()) }); err != nil {
			return nil, err
		}
		var elapsed time.Duration
		if elapsed, err = timed(func() error {
			return each(joining, func(c *cluster) error { return c.publish(ctx, all(s.sources), func(time.Duration) {}) })
		}); err != nil {
			return nil, err
		}
		row.fill = float64(len(joining)*s.sources) / elapsed.Seconds()
		fmt.Fprintf(os.Stderr, "%s: %.0f events/s as they came\n", time.Now().Format(time.TimeOnly), row.fill)
		if err := row.sustain(ctx, h, clusters, s); err != nil {
			return nil, err
		}
		if err := row.outage(ctx, h, clusters, s); err != nil {
			return nil, err
		}
		if row.usage, err = h.usage(); err != nil {
			return nil, err
		}
		for _, c := range clusters {
			row.retried += c.retried.Swap(0)
		}
		r.rows = append(r.rows, row)
		fmt.Fprint(os.Stderr, r.table())
	}
	return r, nil
}

// sustain has every cluster publish changes for a time.
func (row *row) sustain(ctx context.Context, h *hub, clusters []*cluster, s settings) error {
	before, err := h.usage()
	if err != nil {
		return err
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
		return err
	}
	after, err := h.usage()
	if err != nil {
		return err
	}
	slices.Sort(times)
	row.sustained = float64(len(times)) / elapsed.Seconds()
	row.median, row.late = times[len(times)/2], times[len(times)*99/100]
	row.cores = (after.cpu - before.cpu).Seconds() / elapsed.Seconds()
	return nil
}

// outage takes half of the clusters away, has some of their sources change, and brings them back all at once, as watchers
// that start: each reads the state of its cluster from the stream, and says what differs.
func (row *row) outage(ctx context.Context, h *hub, clusters []*cluster, s settings) error {
	away := clusters[:len(clusters)/2]
	for _, c := range away {
		c.disconnect()
	}
	changed := max(1, int(float64(s.sources)*s.changed))
	row.away, row.missed = len(away), len(away)*changed
	var err error
	row.catchUp, err = timed(func() error {
		return each(away, func(c *cluster) error {
			if err := c.connect(ctx, h.url()); err != nil {
				return err
			}
			if err := c.readState(ctx); err != nil {
				return err
			}
			return c.publish(ctx, some(s.sources, changed), func(time.Duration) {})
		})
	})
	return err
}

// each does something for each cluster at once.
func each(clusters []*cluster, do func(*cluster) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(clusters))
	for i, c := range clusters {
		wg.Go(func() {
			if err := do(c); err != nil {
				errs[i] = fmt.Errorf("%s: %w", c.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func timed(do func() error) (time.Duration, error) {
	begun := time.Now()
	err := do()
	return time.Since(begun), err
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// some returns k different numbers below n, or all if there are fewer.
func some(n, k int) []int { return rand.Perm(n)[:min(n, k)] }
