package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	// warmUps is the number of changes at the start of a round that are not counted.
	warmUps = 5
	// samplesInRound is how many single changes are counted in a round.
	samplesInRound = 10
	// sharedInRound is how often the shared Secret is changed in a round.
	sharedInRound = 3
	// smallBurstsInRound is how often 300 Secrets are changed at once in a round. 1,000 Secrets are changed at once only one
	// time.
	smallBurstsInRound = 3
)

// round starts a contender, measures it, and stops it.
func (b *bench) round(ctx context.Context, c contender) error {
	defer c.stop()
	if err := b.startCalm(ctx, c); err != nil {
		return err
	}
	if err := b.warmUp(ctx, c); err != nil {
		return err
	}
	if err := b.rollAll(ctx, c); err != nil {
		return err
	}
	counter, err := b.startCount(c)
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		run  func(context.Context, contender) (rolled int, err error)
	}{
		{latency, b.latencies},
		{shared, b.shareds},
		{burst300, func(ctx context.Context, c contender) (int, error) {
			return b.bursts(ctx, c, burst300, 300, smallBurstsInRound)
		}},
		{burst1000, func(ctx context.Context, c contender) (int, error) { return b.bursts(ctx, c, burst1000, 1000, 1) }},
	}
	rolled := 0
	for _, step := range steps {
		if !b.settings.measures(step.name, c) {
			continue
		}
		n, err := step.run(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		rolled += n
	}
	return b.endCount(ctx, counter, rolled)
}

// one changes the Secret of one Deployment, and returns the time until the observer sees the patched template.
func (b *bench) one(ctx context.Context, c contender, i int) (time.Duration, error) {
	w := b.observer.expect([]string{b.key(i)})
	took, err := b.timed(ctx, w, func() error {
		return b.cluster.change(ctx, namespaceOf(i), c.owner(), number(i%b.cluster.deployments))
	})
	if err != nil {
		return 0, err
	}
	return took, b.observer.quiet(ctx, w)
}

// timed writes, and returns the time from when the write is sent until the observer has seen what it waits for. The watches of the API server see
// a write before the writer has its answer. A clock that starts with the answer leaves out a part of the way, and may have a patch before it starts.
func (b *bench) timed(ctx context.Context, w *await, write func() error) (time.Duration, error) {
	start := time.Now()
	if err := write(); err != nil {
		return 0, err
	}
	return b.observer.until(ctx, w, start)
}

// key returns the observer's key of Deployment i.
func (b *bench) key(i int) string {
	return namespaceOf(i) + "/" + deploymentName(i%b.cluster.deployments)
}

// warmUp makes the changes that are not counted.
func (b *bench) warmUp(ctx context.Context, c contender) error {
	for i := range warmUps {
		if _, err := b.one(ctx, c, i); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	return nil
}

func (b *bench) latencies(ctx context.Context, c contender) (int, error) {
	return samplesInRound, b.singles(ctx, c, latency)
}

// singles changes one Secret after the other, and adds how long each took.
func (b *bench) singles(ctx context.Context, c contender, name string) error {
	for i := range samplesInRound {
		took, err := b.one(ctx, c, warmUps+i*7)
		if err != nil {
			return err
		}
		b.results.add(name, c, milliseconds(took))
	}
	b.say("  one change: %.1f ms at the median", median(b.results.of(name, c.name())))
	return nil
}

// shareds repeatedly changes the Secret that all Deployments of the first namespace read.
func (b *bench) shareds(ctx context.Context, c contender) (int, error) {
	var keys []string
	for i := 0; i < b.cluster.deployments; i += allNamespaces {
		keys = append(keys, b.key(i))
	}
	for range sharedInRound {
		w := b.observer.expect(keys)
		took, err := b.timed(ctx, w, func() error { return b.cluster.change(ctx, namespaceOf(0), c.owner(), sharedSecret) })
		if err != nil {
			return 0, err
		}
		if err := b.observer.quiet(ctx, w); err != nil {
			return 0, err
		}
		b.results.add(shared, c, milliseconds(took))
		b.say("  one Secret of %d Deployments: %.0f ms", len(keys), milliseconds(took))
	}
	return sharedInRound * len(keys), nil
}

func (b *bench) bursts(ctx context.Context, c contender, name string, atScaleOne, times int) (rolled int, err error) {
	for range times {
		n, err := b.burst(ctx, c, name, atScaleOne)
		if err != nil {
			return 0, err
		}
		rolled += n
	}
	return rolled, nil
}

// These are appended to the name of a burst for its processor time.
const (
	untilPatched = " cpu until patched"
	untilTold    = " cpu until told"
)

// burst changes the Secrets of many Deployments at once. The rate is over the time from the first write until the last
// template is seen patched.
func (b *bench) burst(ctx context.Context, c contender, name string, atScaleOne int) (int, error) {
	n := min(max(1, int(float64(atScaleOne)*b.settings.scale)), b.cluster.deployments)
	spent, err := b.startClock(c)
	if err != nil {
		return 0, err
	}
	w, took, err := b.atOnce(ctx, c, n)
	if err != nil {
		return 0, err
	}
	if err := spent.add(b.results, name+untilPatched, n); err != nil {
		return 0, err
	}
	rate := float64(n) / took.Seconds()
	b.results.add(name, c, rate)
	b.say("  %s changes at once: %.0f in a second", strconv.Itoa(n), rate)
	if err := b.observer.quiet(ctx, w); err != nil {
		return 0, err
	}
	// The last outcomes are published after the controllers have finished.
	if err := calm(ctx, c.processes()); err != nil {
		return 0, err
	}
	return n, spent.add(b.results, name+untilTold, n)
}

// atOnce changes the Secrets of n Deployments at once. It returns the time from the first write until the last template is seen patched.
func (b *bench) atOnce(ctx context.Context, c contender, n int) (*await, time.Duration, error) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = b.key(i)
	}
	w := b.observer.expect(keys)
	took, err := b.timed(ctx, w, func() error {
		return inParallel(ctx, n, func(ctx context.Context, i int) error {
			return b.cluster.change(ctx, namespaceOf(i), c.owner(), number(i))
		})
	})
	return w, took, err
}

// rollAll rolls each Deployment once, which is not counted. The previous contender may have written other annotations on the templates, and the
// admission policy fully evaluates the first write of some annotations (docs/adr/0022). So each contender is measured as if it had been running
// for a long time.
func (b *bench) rollAll(ctx context.Context, c contender) error {
	w, _, err := b.atOnce(ctx, c, b.cluster.deployments)
	if err == nil {
		err = b.observer.quiet(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("rolling each once: %w", err)
	}
	return calm(ctx, c.processes()) // The requests about these rolls end, too.
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
