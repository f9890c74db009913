package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

const (
	// fanOutNamespace is the namespace of all Deployments of the fan-out.
	fanOutNamespace = "fan-out"
	// allFanOut is the number of Deployments at scale 1.
	allFanOut = 2000
	// fanOutLimit is how many rollouts may be in progress if there is a limit, and fanOutWaves is the number of waves if there are any.
	fanOutLimit = 50
	fanOutWaves = 10
	// mostFanOutRounds is how often a way without a target is measured at most. A sample covers thousands of rollouts, and takes minutes.
	mostFanOutRounds = 2
	// fanOutPause is the pause between two samples, in which the control plane deletes ReplicaSets of the last rollouts.
	fanOutPause = 5 * time.Second
	// cpuOfPatching is appended to the name of a way for the processor time per Deployment of the process that patches.
	cpuOfPatching = " cpu"
)

// way is how the Deployments are rolled.
type way struct {
	// limit is how many rollouts may be in progress. Zero means no limit.
	limit int
	// inWaves says that the Deployments are in waves. The floor ignores waves.
	inWaves bool
}

// name returns the name in results of the time until the last rollout is complete, in seconds.
func (w way) name() string {
	name := fmt.Sprintf("%s of %d at a time", fanOut, w.limit)
	if w.inWaves {
		name += " in waves"
	}
	return name
}

// comparedWith returns the ways that a sample of a contender counts for. The floor is also compared with the waves of its
// limit.
func (w way) comparedWith(owner string) []way {
	if owner == contenderFloor {
		return []way{w, {limit: w.limit, inWaves: true}}
	}
	return []way{w}
}

// fan measures one Secret and its many readers, on its own control plane, which has pods.
type fan struct {
	*bench
	keys    []string
	floor   *floor
	keyturn *keyturn
}

// measureFanOut measures a change of one Secret that all Deployments of a namespace read, each with one pod.
func (b *bench) measureFanOut(ctx context.Context) error {
	// There are millions of requests, and nobody reads the audit log or the Kubernetes Events, so neither should fill the disk. The controllers'
	// own request limits would slow down both contenders, and hide their difference.
	cp, client, err := b.start(ctx, testbed.Options{
		ControllerQPS: 2000, ControllerBurst: 4000,
		APIServerArgs: []string{unaudited, "--event-ttl=2m", "--etcd-compaction-interval=1m"},
	}, "controlplane-pods")
	if err != nil {
		return err
	}
	defer cp.Stop()
	f := &fan{bench: &bench{
		settings: b.settings, began: b.began, results: b.results, cp: cp,
		cluster: &cluster{client: client, deployments: b.settings.fanOut},
	}}
	if f.floor, f.keyturn, err = newContenders(ctx, cp); err != nil {
		return err
	}
	observing, stop := context.WithCancel(ctx)
	defer stop()
	// Keyturn writes the first records at 20 a second, and a small machine completes about 20 rollouts a second.
	within := patience + time.Duration(b.settings.fanOut)*200*time.Millisecond
	if f.observer, err = newObserver(observing, client, within); err != nil {
		return err
	}
	if err := f.fill(ctx); err != nil {
		return err
	}
	if err := f.rollAllOnce(ctx); err != nil {
		return fmt.Errorf("rolling each once: %w", err)
	}
	for round := range b.settings.rounds {
		f.say("fan-out, round %d of %d", round+1, b.settings.rounds)
		if err := f.round(ctx, round); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}

// rollAllOnce rolls each Deployment, which is not counted: the API server evaluates all of the admission policy for the first roll.
func (f *fan) rollAllOnce(ctx context.Context) error {
	c := f.keyturn.limited(0)
	defer c.stop()
	if err := f.startCalm(ctx, c); err != nil {
		return err
	}
	rolled, _, err := f.rollOut(ctx, c)
	if err != nil {
		return err
	}
	return f.observer.quiet(ctx, rolled)
}

// rollOut changes the Secret of a contender. It returns the time from when the write is sent until the last rollout is complete.
func (f *fan) rollOut(ctx context.Context, c contender) (*await, time.Duration, error) {
	rolled := f.observer.expectRollouts(f.keys)
	took, err := f.timed(ctx, rolled, func() error { return f.cluster.change(ctx, fanOutNamespace, c.owner(), sharedSecret) })
	return rolled, took, err
}

// round measures the limit with the floor and with Keyturn, in every other round in reverse, and a few times the other ways, too.
func (f *fan) round(ctx context.Context, round int) error {
	contenders := []contender{f.floor.limited(fanOutLimit), f.keyturn.limited(fanOutLimit)}
	if round < mostFanOutRounds && f.settings.selected.MatchString(fanOutSplit) {
		contenders = f.splitters()
	}
	if round%2 == 1 {
		slices.Reverse(contenders)
	}
	for _, c := range contenders {
		if err := f.rollByRight(ctx, way{limit: fanOutLimit}, c); err != nil {
			return err
		}
	}
	if round >= mostFanOutRounds || !f.settings.selected.MatchString(fanOut) {
		return nil
	}
	return f.otherWays(ctx)
}

// otherWays measures no limit with the floor and with Keyturn, and then Keyturn in waves, with and without the limit.
func (f *fan) otherWays(ctx context.Context) error {
	for _, c := range []contender{f.floor.limited(0), f.keyturn.limited(0)} {
		if err := f.roll(ctx, way{}, c); err != nil {
			return err
		}
	}
	if err := f.setWaves(ctx, waveOf); err != nil {
		return err
	}
	for _, limit := range []int{fanOutLimit, 0} {
		if err := f.roll(ctx, way{limit: limit, inWaves: true}, f.keyturn.limited(limit)); err != nil {
			return err
		}
	}
	return f.setWaves(ctx, noWave)
}

// roll measures one way of a contender: how long it takes, and what it costs.
func (f *fan) roll(ctx context.Context, w way, c contender) (err error) {
	defer func() {
		if c.stop(); err != nil {
			err = fmt.Errorf("%s, %s: %w", c.name(), w.name(), err)
		}
	}()
	if err := f.startCalm(ctx, c); err != nil {
		return err
	}
	opened, err := f.openBill(ctx, c)
	if err != nil {
		return err
	}
	rolled, took, err := f.rollOut(ctx, c)
	if err != nil {
		return err
	}
	// Only when nothing is left to do is it known whether anything was patched twice.
	if err := calm(ctx, c.processes()); err != nil {
		return err
	}
	costs, err := f.closeBill(ctx, opened, len(f.keys))
	if err != nil {
		return err
	}
	for _, of := range w.comparedWith(c.owner()) {
		f.results.add(of.name(), c, took.Seconds())
		for name, cost := range costs {
			f.results.add(of.name()+name, c, cost)
		}
	}
	f.say("  %s, %s: %.1f s, processor time for each %.2f ms, and %.1f ms of the control plane",
		c.name(), w.name(), took.Seconds(), costs[cpuOfPatching], costs[ofServers])
	return errors.Join(f.observer.quiet(ctx, rolled), testbed.Sleep(ctx, fanOutPause))
}

// patching returns the process that patches: the floor, or the actuator with NATS.
func patching(c contender) []*process.Process {
	return slices.DeleteFunc(c.processes(), func(p *process.Process) bool { return p.Name() == "watcher" })
}

// limited returns a floor with at most limit rollouts in progress. Zero means no limit.
func (f *floor) limited(limit int) *floor {
	limited := *f
	limited.limit = limit
	return &limited
}

// limited returns the same installation with a limit of rollouts in progress. If only one namespace has rollouts, it may use all of them.
func (k *keyturn) limited(limit int) *keyturn {
	limited := keyturnOf(k.called, k.programs)
	limited.actuatorArgs = []string{"--namespaces", fanOutNamespace, "--max-rollouts", strconv.Itoa(limit)}
	return limited
}
