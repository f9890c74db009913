package main

import (
	"context"
	"time"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// What is measured of the programs among many Secrets, as results know it. Sizes are in MB, 10^6 bytes.
const (
	firstLook     = "first look"
	peak          = "peak"
	residentFirst = "resident after the first look"
	resident      = "resident"
	residentBusy  = "resident after changes"
	idleWatcher   = "idle watcher"
	idleActuator  = "idle actuator"
	// These are appended to the name of a size: that of one program alone.
	ofWatcher  = " of the watcher"
	ofActuator = " of the actuator"
)

const (
	// rest is how long the programs are idle before their memory is measured: longer than NATS keeps buffers, and longer than the
	// dedupe window of CHANGES.
	rest = 150 * time.Second
	// idleTime is how long their idle usage is measured.
	idleTime = 20 * time.Second
)

// measureMemory starts the programs in a cluster with many large Secrets: first with an empty stream, so that each Secret is
// published and read, and then with the stream that has them, as after any restart.
func (b *bench) measureMemory(ctx context.Context, dir string) error {
	b.say("making %d Secrets of %d bytes that nobody reads", b.cluster.bystanders, bystanderSize)
	if err := b.cluster.addBystanders(ctx); err != nil {
		return err
	}
	k, err := newKeyturn(ctx, b.cp, dir)
	if err != nil {
		return err
	}
	defer k.stop()
	now := func(m process.Memory) int64 { return m.RSS }
	b.say("starting the programs among them, with an empty stream")
	started := time.Now()
	if err := b.startCalm(ctx, k); err != nil {
		return err
	}
	b.results.add(firstLook, k, time.Since(started).Seconds())
	if err := b.addMemory(k, peak, func(m process.Memory) int64 { return m.Peak }); err != nil {
		return err
	}
	if err := sleep(ctx, rest); err != nil {
		return err
	}
	if err := b.addMemory(k, residentFirst, now); err != nil {
		return err
	}
	k.stop()
	b.say("starting them again")
	if err := b.startCalm(ctx, k); err != nil {
		return err
	}
	if err := sleep(ctx, rest); err != nil {
		return err
	}
	if err := b.addMemory(k, resident, now); err != nil {
		return err
	}
	if err := b.idle(ctx, k); err != nil {
		return err
	}
	if _, err := b.burst(ctx, k, "burst among bystanders", 300); err != nil {
		return err
	}
	return b.addMemory(k, residentBusy, now)
}

func (b *bench) startCalm(ctx context.Context, c contender) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	if c.owner() == contenderKeyturn {
		if err := b.observer.recorded(ctx); err != nil {
			return err
		}
	}
	return calm(ctx, c.processes())
}

// addMemory adds a size of both programs together, and of each. The requests and limits of the pods are derived from these.
func (b *bench) addMemory(k *keyturn, name string, size func(process.Memory) int64) error {
	watcher, err := k.watcher.Memory()
	if err != nil {
		return err
	}
	actuator, err := k.actuator.Memory()
	if err != nil {
		return err
	}
	const mb = 1e6
	b.results.add(name, k, float64(size(watcher)+size(actuator))/mb)
	b.results.add(name+ofWatcher, k, float64(size(watcher))/mb)
	b.results.add(name+ofActuator, k, float64(size(actuator))/mb)
	b.say("  %s: watcher %.0f MB, actuator %.0f MB", name, float64(size(watcher))/mb, float64(size(actuator))/mb)
	return nil
}

// idle adds the processor time that each of the programs uses in a second, in milliseconds.
func (b *bench) idle(ctx context.Context, k *keyturn) error {
	programs := map[string][]*process.Process{idleWatcher: {k.watcher.Process}, idleActuator: {k.actuator.Process}}
	before := make(map[string]time.Duration)
	var err error
	for name, processes := range programs {
		if before[name], err = usage(processes); err != nil {
			return err
		}
	}
	b.say("watching them do nothing for %s", idleTime)
	if err := sleep(ctx, idleTime); err != nil {
		return err
	}
	for name, processes := range programs {
		after, err := usage(processes)
		if err != nil {
			return err
		}
		b.results.add(name, k, milliseconds(after-before[name])/idleTime.Seconds())
	}
	return nil
}
