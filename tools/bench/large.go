package main

import (
	"context"
	"fmt"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
)

// The numbers of objects in a large cluster at scale 1. Each workload reads its own Secret, and nothing reads the others.
const (
	largeWorkloads  = 10_000
	largeSources    = 50_000
	largeSourceSize = 2_000
)

// The names in results of what is measured in a large cluster. Durations are in seconds, sizes in MB.
const (
	largeFirst   = "large: first start"
	largeAgain   = "large: start"
	largePeak    = "large: peak"
	largeRest    = "large: resident"
	largeLatency = "large: latency"
)

// largeBelow is how much memory both programs together may use when idle, in MB.
const largeBelow = 250

// measureLarge measures, in a large cluster, the start of both programs, their memory, and a single change.
func (b *bench) measureLarge(ctx context.Context) error {
	l, stop, err := b.newPlane(ctx, "controlplane-large", newLargeCluster(b.settings.scale), unaudited)
	if err != nil {
		return err
	}
	defer stop()
	floor, keyturn, err := newContenders(ctx, l.cp)
	if err != nil {
		return err
	}
	if err := l.cluster.addBystanders(ctx); err != nil {
		return err
	}
	if err := l.inLarge(ctx, floor); err != nil {
		return fmt.Errorf("the floor: %w", err)
	}
	if err := l.inLarge(ctx, keyturn); err != nil {
		return fmt.Errorf("keyturn: %w", err)
	}
	return nil
}

func newLargeCluster(scale float64) *cluster {
	return clusterOf(scale, largeWorkloads, largeSources-largeWorkloads, largeSourceSize)
}

// inLarge starts a contender twice, the first time without any state. The first start is complete when both programs are ready and
// Keyturn has written the first record of each workload. The second one is complete when the programs are ready.
func (b *bench) inLarge(ctx context.Context, c contender) error {
	defer c.stop()
	if err := b.timedStart(ctx, c, largeFirst); err != nil {
		return err
	}
	if c.owner() == contenderKeyturn {
		if err := b.observer.recorded(ctx); err != nil {
			return err
		}
		if err := b.addPeak(c, largePeak); err != nil {
			return err
		}
	}
	c.stop()
	if err := b.timedStart(ctx, c, largeAgain); err != nil {
		return err
	}
	if err := calm(ctx, c.processes()); err != nil {
		return err
	}
	if c.owner() == contenderKeyturn {
		if err := testbed.Sleep(ctx, rest); err != nil {
			return err
		}
		if err := b.addMemory(c, largeRest); err != nil {
			return err
		}
	}
	if err := b.warmUp(ctx, c); err != nil {
		return err
	}
	return b.singles(ctx, c, largeLatency)
}

// timedStart starts a contender, and adds how long it takes until it is ready.
func (b *bench) timedStart(ctx context.Context, c contender, name string) error {
	started := time.Now()
	if err := b.startOnCores(ctx, c); err != nil {
		return err
	}
	took := time.Since(started).Seconds()
	b.results.add(name, c, took)
	b.say("  %s of %s: ready after %.1f s", name, c.name(), took)
	return nil
}

// largeLines returns the lines about a large cluster.
func (r *report) largeLines() []line {
	c := newLargeCluster(r.settings.scale)
	in := func(what string) string {
		return fmt.Sprintf("%s, among %d workloads and %d Secrets", what, c.deployments, c.deployments+c.bystanders)
	}
	return []line{
		r.info(largeFirst, in("First start, with an empty stream, until both programs are ready"), "%.1f s"),
		r.info(largeAgain, in("Start after that"), "%.1f s"),
		r.info(largePeak, in("Peak memory of both"), "%.0f MB"),
		r.below(largeRest, in("Resident memory of both"), "%.0f MB", largeBelow, fmt.Sprintf("below %d MB", largeBelow)),
		r.info(largeRest+ofWatcher, "Of which the watcher", "%.0f MB"),
		r.info(largeRest+ofActuator, "Of which the actuator", "%.0f MB"),
		r.info(largeRest+ofNATS, "Of which NATS", "%.0f MB"),
		r.info(largeLatency, in("One change"), "%.1f ms"),
	}
}
