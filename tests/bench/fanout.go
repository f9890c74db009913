package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

const (
	// fanOutNamespace is where all Deployments of the fan-out are.
	fanOutNamespace = "fan-out"
	// allFanOut is how many there are at scale 1.
	allFanOut = 2000
	// fanOutLimit is how many rollouts may be in progress where there is a limit, and fanOutWaves how many waves there are where there are any.
	fanOutLimit = 50
	fanOutWaves = 10
	// mostFanOutRounds is how often each way is measured at most: a sample is the sum of thousands of rollouts, and takes minutes.
	mostFanOutRounds = 2
	// fanOutPause is how long the control plane is left alone between two samples: it deletes ReplicaSets after the last rollout.
	fanOutPause = 5 * time.Second
	// cpuOfPatching, after the name of a way, is the processor time for each Deployment of the process that patches.
	cpuOfPatching = " cpu"
)

// way is how the Deployments are rolled.
type way struct {
	// limit is how many rollouts may be in progress. Zero is without limit.
	limit int
	// inWaves says that the Deployments are in waves. The floor knows none.
	inWaves bool
}

// name is how results know the time until the last rollout is complete, in seconds.
func (w way) name() string {
	name := fmt.Sprintf("%s of %d at a time", fanOut, w.limit)
	if w.inWaves {
		name += " in waves"
	}
	return name
}

// comparedWith returns the ways that a sample of a contender counts for. The floor stands beside the waves of its limit, too.
func (w way) comparedWith(owner string) []way {
	if owner == contenderFloor {
		return []way{w, {limit: w.limit, inWaves: true}}
	}
	return []way{w}
}

// fan is a bench of one Secret and all that read it, on a control plane of its own that has pods.
type fan struct {
	*bench
	keys    []string
	floor   *floor
	keyturn *keyturn
}

// measureFanOut changes one Secret that all Deployments of a namespace read, each of which has a pod.
func (b *bench) measureFanOut(ctx context.Context) error {
	// Millions of requests are made and nobody reads of them, nor the Kubernetes Events. Neither is to fill the disk. The controllers' own limits on
	// requests would hold both contenders back, and hide their difference.
	cp, client, err := b.start(ctx, testbed.Options{
		Log: os.Stdout, ControllerQPS: 2000, ControllerBurst: 4000,
		APIServerArgs: []string{"--audit-log-path=", "--event-ttl=2m", "--etcd-compaction-interval=1m"},
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
	// Keyturn writes the first records at 20 a second, and a small machine completes as many rollouts.
	within := patience + time.Duration(b.settings.fanOut)*200*time.Millisecond
	if f.observer, err = newObserver(observing, client, within); err != nil {
		return err
	}
	if err := f.fill(ctx); err != nil {
		return err
	}
	rounds := min(b.settings.rounds, mostFanOutRounds)
	for round := range rounds {
		f.say("fan-out, round %d of %d", round+1, rounds)
		if err := f.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}

// round measures all ways: the limits in turn, each of the floor and of Keyturn, and then the same of Keyturn in waves.
func (f *fan) round(ctx context.Context) error {
	limits := []int{fanOutLimit, 0}
	for _, limit := range limits {
		for _, c := range []contender{f.floor.limited(limit), f.keyturn.limited(limit)} {
			if err := f.roll(ctx, way{limit: limit}, c); err != nil {
				return err
			}
		}
	}
	if err := f.setWaves(ctx, waveOf); err != nil {
		return err
	}
	for _, limit := range limits {
		if err := f.roll(ctx, way{limit: limit, inWaves: true}, f.keyturn.limited(limit)); err != nil {
			return err
		}
	}
	return f.setWaves(ctx, noWave)
}

// roll measures one way of a contender: from the API server's response to the write of the Secret until the last rollout is complete.
func (f *fan) roll(ctx context.Context, w way, c contender) (err error) {
	defer func() {
		if c.stop(); err != nil {
			err = fmt.Errorf("%s, %s: %w", c.name(), w.name(), err)
		}
	}()
	if err := f.startCalm(ctx, c); err != nil {
		return err
	}
	before, err := used(patching(c))
	if err != nil {
		return err
	}
	rolled := f.observer.expectRollouts(f.keys)
	if err := f.cluster.change(ctx, fanOutNamespace, c.owner(), sharedSecret); err != nil {
		return err
	}
	took, err := f.observer.until(ctx, rolled, time.Now())
	if err != nil {
		return err
	}
	// What was patched twice is known when nothing is left to do.
	if err := calm(ctx, c.processes()); err != nil {
		return err
	}
	after, err := used(patching(c))
	if err != nil {
		return err
	}
	each := milliseconds(sum(after)-sum(before)) / float64(len(f.keys))
	for _, of := range w.comparedWith(c.owner()) {
		f.results.add(of.name(), c, took.Seconds())
		f.results.add(of.name()+cpuOfPatching, c, each)
	}
	f.say("  %s, %s: %.1f s, %.2f ms of processor time for each", c.name(), w.name(), took.Seconds(), each)
	return errors.Join(f.observer.quiet(ctx, rolled), sleep(ctx, fanOutPause))
}

// patching returns the process of a contender that patches: the floor, or the actuator.
func patching(c contender) []*process.Process {
	return slices.DeleteFunc(c.processes(), func(p *process.Process) bool { return p.Name() == "watcher" })
}

// limited returns a floor that has so many rollouts in progress at most. Zero is without limit.
func (f *floor) limited(limit int) *floor {
	limited := *f
	limited.limit = limit
	return &limited
}

// limited returns the same installation with a limit on the rollouts in progress. Where only one namespace is rolled, that gets all of them.
func (k *keyturn) limited(limit int) *keyturn {
	return &keyturn{
		called: k.called, programs: k.programs,
		actuatorArgs: []string{"--namespaces", fanOutNamespace, "--max-rollouts", strconv.Itoa(limit)},
	}
}
