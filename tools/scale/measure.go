package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// report is what was measured of a hub.
type report struct {
	settings settings
	rows     []row
	// clusterBytes is how much the streams of a cluster reserve on each server, and fleetBytes how much FLEET does.
	clusterBytes, fleetBytes int64
}

// row has the results for one number of clusters.
type row struct {
	clusters, sources int
	// declared is how long it took to declare the streams of one cluster.
	declared time.Duration
	// fill is the rate at which new sources were stored on the stream, in events per second.
	fill float64
	load
	// behind is the longest time that FLEET took to collect everything after publishing had stopped.
	behind time.Duration
	// events is how many events have been published so far, and stored how many of them FLEET has.
	events, stored int
	// usage is what each server uses.
	usage usage
	outage
	// retried is how many publications and readings of the state were retried because the hub did not respond in time.
	retried int64
}

// measure measures each of the sizes.
func measure(ctx context.Context, h *hub, s settings) (*report, error) {
	r := &report{settings: s}
	var err error
	if r.clusterBytes, r.fleetBytes, err = h.reserved(names(1)[0]); err != nil {
		return nil, err
	}
	var clusters []*cluster
	defer func() {
		for _, c := range clusters {
			c.disconnect()
		}
	}()
	for _, size := range s.sizes {
		progress("to %d clusters", size)
		var joining []*cluster
		for _, name := range names(size)[len(clusters):] {
			joining = append(joining, newCluster(name, s.sources))
		}
		clusters = append(clusters, joining...)
		row := row{clusters: size, sources: size * s.sources}
		if err := row.measure(ctx, h, clusters, joining, s); err != nil {
			return nil, err
		}
		r.rows = append(r.rows, row)
		fmt.Fprint(os.Stderr, r.table())
	}
	return r, nil
}

// measure measures one step: some clusters join, all are under load, half of them are disconnected for a while, and in the end
// FLEET must have everything.
func (row *row) measure(ctx context.Context, h *hub, clusters, joining []*cluster, s settings) error {
	if err := row.join(ctx, h, joining, s); err != nil {
		return err
	}
	var err error
	if row.load, err = sustain(ctx, h, clusters, s); err != nil {
		return err
	}
	progress("%.0f events/s sustained", row.sustained)
	if err := row.await(ctx, h); err != nil {
		return err
	}
	if row.outage, err = comeBack(ctx, h, clusters, s); err != nil {
		return err
	}
	if err := row.await(ctx, h); err != nil {
		return err
	}
	if err := row.verify(ctx, h); err != nil {
		return err
	}
	for _, c := range clusters {
		row.retried += c.retried.Swap(0)
		row.events += c.events()
	}
	row.usage, err = h.usage()
	return err
}

// await waits until FLEET has everything.
func (row *row) await(ctx context.Context, h *hub) error {
	begun := time.Now()
	at, err := h.fleet.collected(ctx)
	if err != nil {
		return err
	}
	behind := max(0, at.Sub(begun))
	progress("FLEET was behind for %s", behind.Round(time.Millisecond))
	row.behind = max(row.behind, behind)
	return nil
}

// verify compares FLEET with what the clusters have published.
func (row *row) verify(ctx context.Context, h *hub) error {
	err := h.fleet.verify(ctx)
	row.stored = h.fleet.stored
	progress("FLEET has %d events", row.stored)
	return err
}

// join makes clusters join: it declares their streams, and they publish all of their sources at once.
func (row *row) join(ctx context.Context, h *hub, joining []*cluster, s settings) error {
	elapsed, err := timed(func() error { return h.join(ctx, joining) })
	if err != nil {
		return err
	}
	row.declared = elapsed / time.Duration(len(joining))
	progress("streams declared in %s", elapsed.Round(time.Millisecond))
	if err := each(joining, func(c *cluster) error { return c.connect(ctx, h) }); err != nil {
		return err
	}
	elapsed, err = timed(func() error {
		return each(joining, func(c *cluster) error { return c.publish(ctx, all(s.sources), func(time.Duration) {}) })
	})
	row.fill = float64(len(joining)*s.sources) / elapsed.Seconds()
	progress("%.0f events/s as they came", row.fill)
	return err
}

// each calls do for all clusters concurrently.
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

// progress reports how far the run is.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
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
