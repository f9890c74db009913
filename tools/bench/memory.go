package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// The names in results of what is measured among many Secrets. Sizes are in MB, 10^6 bytes.
const (
	firstLook     = "first look"
	peak          = "peak"
	residentFirst = "resident after the first look"
	resident      = "resident"
	residentBusy  = "resident after changes"
	idle          = "idle"
	// These are appended to a name for the figure of one program alone.
	ofWatcher  = " of the watcher"
	ofActuator = " of the actuator"
	ofNATS     = " of NATS"
	// anonymous is appended to a name, before that of a program, for the part that no other process shares and the kernel cannot take back.
	anonymous = ", anonymous"
)

// ofProgram is what is appended to a name for a program, by the name of the program.
var ofProgram = map[string]string{"watcher": ofWatcher, "actuator": ofActuator, "nats": ofNATS}

const (
	// rest is how long the programs are idle before their memory is measured: longer than NATS keeps buffers, and longer than the
	// dedupe window of CHANGES.
	rest = 150 * time.Second
	// idleTime is how long their idle usage is measured.
	idleTime = 20 * time.Second
)

// memories measures the memory of all contenders except the floor, one after the other, each with its own streams in dir.
func (b *bench) memories(ctx context.Context, dir string) error {
	b.say("making %d Secrets of %d bytes that nobody reads", b.cluster.bystanders, bystanderSize)
	if err := b.cluster.addBystanders(ctx); err != nil {
		return err
	}
	k, err := newKeyturn(ctx, b.cp, filepath.Join(dir, "keyturn"))
	if err != nil {
		return err
	}
	contenders := []contender{k}
	if b.settings.reloader {
		mode, errMode := newKeyturn(ctx, b.cp, filepath.Join(dir, "mode"))
		command, err := newCommand(ctx, b.cp, filepath.Join(dir, "command"), k)
		if err := errors.Join(errMode, err); err != nil {
			return err
		}
		contenders = append(contenders, mode.reloaderMode(), command)
	}
	for _, c := range contenders {
		if err := b.measureMemory(ctx, c); err != nil {
			return fmt.Errorf("of %s: %w", c.name(), err)
		}
	}
	return nil
}

// measureMemory starts a contender in a cluster with many large Secrets: first with an empty stream, so that each Secret is published and
// read, and then with the filled stream, as after a restart.
func (b *bench) measureMemory(ctx context.Context, c contender) error {
	defer c.stop()
	b.say("starting %s among them, with an empty stream", c.name())
	started := time.Now()
	if err := b.startCalm(ctx, c); err != nil {
		return err
	}
	b.results.add(firstLook, c, time.Since(started).Seconds())
	if err := b.addPeak(c, peak); err != nil {
		return err
	}
	if err := testbed.Sleep(ctx, rest); err != nil {
		return err
	}
	if err := b.addMemory(c, residentFirst); err != nil {
		return err
	}
	c.stop()
	b.say("starting it again")
	if err := b.startCalm(ctx, c); err != nil {
		return err
	}
	if err := testbed.Sleep(ctx, rest); err != nil {
		return err
	}
	if err := b.addMemory(c, resident); err != nil {
		return err
	}
	if err := b.idle(ctx, c); err != nil {
		return err
	}
	if _, err := b.burst(ctx, c, "burst among bystanders", 300); err != nil {
		return err
	}
	return b.addMemory(c, residentBusy)
}

func (b *bench) startCalm(ctx context.Context, c contender) error {
	if err := b.startOnCores(ctx, c); err != nil {
		return err
	}
	if c.owner() == contenderKeyturn {
		if err := b.observer.recorded(ctx); err != nil {
			return err
		}
	}
	return calm(ctx, c.processes())
}

// addMemory adds the resident size of all processes together, and of each if there are several, and the anonymous part of it. The requests and limits
// of the pods are derived from these figures.
func (b *bench) addMemory(c contender, name string) error {
	return errors.Join(
		b.addSize(c, name, func(m process.Memory) int64 { return m.RSS }),
		b.addSize(c, name+anonymous, func(m process.Memory) int64 { return m.Anonymous }),
	)
}

// addPeak is addMemory for the largest resident size so far.
func (b *bench) addPeak(c contender, name string) error {
	return b.addSize(c, name, func(m process.Memory) int64 { return m.Peak })
}

func (b *bench) addSize(c contender, name string, size func(process.Memory) int64) error {
	const mb = 1e6
	total := 0.0
	for _, p := range c.processes() {
		m, err := p.Memory()
		if err != nil {
			return err
		}
		part := float64(size(m)) / mb
		total += part
		if of, known := ofProgram[p.Name()]; known {
			b.results.add(name+of, c, part)
		}
		b.say("  %s: %s %.0f MB", name, p.Name(), part)
	}
	b.results.add(name, c, total)
	return nil
}

// idle adds the processor time per second, in milliseconds, of all processes together, and of each if there are several.
func (b *bench) idle(ctx context.Context, c contender) error {
	spent, err := b.startClock(c)
	if err != nil {
		return err
	}
	b.say("watching it do nothing for %s", idleTime)
	if err := testbed.Sleep(ctx, idleTime); err != nil {
		return err
	}
	return spent.add(b.results, idle, int(idleTime.Seconds()))
}
