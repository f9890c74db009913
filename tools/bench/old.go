package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// The names in results of what is measured of an earlier build and of this one by turns.
const (
	oldLatency = "old: latency"
	oldBurst   = "old: burst"
)

// oldChanges is how many Secrets are changed at once.
const oldChanges = 1000

// oldKeyturn is both programs of an earlier build, whose actuator has NATS in its process with --nats-embedded.
type oldKeyturn struct{ *keyturn }

// newOldKeyturn returns the programs of a checkout of the repository in which "make build" has run, with the rights and the policies of that.
func newOldKeyturn(ctx context.Context, cp *testbed.ControlPlane, checkout string) (oldKeyturn, error) {
	k, err := installed(ctx, cp, contenderOld, programs.Options{
		Dir: programsDir(cp), RBAC: filepath.Join(checkout, "deploy", "base", "rbac.yaml"),
		Binaries: programs.Binaries{Watcher: filepath.Join(checkout, watcherBinary), Actuator: filepath.Join(checkout, actuatorBinary)},
	})
	return oldKeyturn{k}, err
}

func (k oldKeyturn) start(ctx context.Context) error {
	listen := strings.TrimPrefix(k.programs.NATSURL(), "nats://")
	if err := k.begin(k.programs.StartActuator("--nats-embedded", "--nats-listen", listen)); err != nil {
		return err
	}
	if err := k.begin(k.programs.StartWatcher()); err != nil {
		return err
	}
	return k.ready(ctx)
}

// turn is a contender and the bench of its control plane.
type turn struct {
	*bench
	contender contender
}

// measureOld measures an earlier build and this one by turns. Each has a control plane of its own with the same content, because the two have other
// policies, and records in other forms. The control plane whose turn it is not has nothing to do.
func (b *bench) measureOld(ctx context.Context) error {
	present, stop, err := b.newPlane(ctx, "controlplane-present", newCluster(b.settings.scale), unaudited)
	if err != nil {
		return err
	}
	defer stop()
	earlier, stopEarlier, err := b.newPlane(ctx, "controlplane-old", newCluster(b.settings.scale), unaudited)
	if err != nil {
		return err
	}
	defer stopEarlier()
	now, err := newKeyturn(ctx, present.cp, programsDir(present.cp))
	if err != nil {
		return err
	}
	old, err := newOldKeyturn(ctx, earlier.cp, b.settings.old)
	if err != nil {
		return err
	}
	turns := []turn{{earlier, old}, {present, now}}
	for round := range b.settings.rounds {
		for _, t := range turns {
			b.say("old, round %d of %d: %s", round+1, b.settings.rounds, t.contender.name())
			if err := t.measure(ctx); err != nil {
				return fmt.Errorf("round %d of the %s: %w", round+1, t.contender.name(), err)
			}
		}
		slices.Reverse(turns)
	}
	return nil
}

// measure starts the contender, measures it, and stops it.
func (t turn) measure(ctx context.Context) error {
	defer t.contender.stop()
	if err := t.startCalm(ctx, t.contender); err != nil {
		return err
	}
	if err := t.warmUp(ctx, t.contender); err != nil {
		return err
	}
	if err := t.rollAll(ctx, t.contender); err != nil {
		return err
	}
	if err := t.singles(ctx, t.contender, oldLatency); err != nil {
		return err
	}
	_, err := t.burst(ctx, t.contender, oldBurst, oldChanges)
	return err
}

// oldAtMost is how much of the processor time of the earlier build this one may use.
const oldAtMost = 0.7

// oldLines returns the lines about the earlier build, which is in the column of the floor.
func (r *report) oldLines() []line {
	if len(r.results.of(oldBurst, contenderOld)) == 0 {
		return nil
	}
	lines := []line{
		r.besideOld(oldLatency, "One change: Secret written to template patched", "%.1f ms"),
		r.besideOld(oldBurst, r.changes(oldChanges), "%.0f/s"),
	}
	for _, step := range []struct{ name, what string }{
		{oldBurst + untilPatched, "CPU time per change of these, until all are patched"},
		{oldBurst + untilTold, "CPU time per change of these, until all outcomes are published"},
	} {
		all := r.besideOld(step.name, step.what, "%.2f ms")
		all.Target = fmt.Sprintf("at most %g×", oldAtMost)
		all.Verdict = verdict(median(r.results.ratios(step.name, contenderKeyturn, contenderOld, median)) <= oldAtMost)
		lines = append(lines, all,
			r.besideOld(step.name+ofWatcher, "Of which the watcher", "%.2f ms"),
			r.besideOld(step.name+ofActuator, "Of which the actuator", "%.2f ms"),
			r.besideOld(step.name+ofNATS, "Of which NATS, where it is a process of its own", "%.2f ms"),
			r.besideOld(step.name+ofServers, "Of the control plane, in the same time", "%.1f ms"),
		)
	}
	return lines
}

func (r *report) besideOld(name, what, format string) line {
	return r.beside(contenderOld, name, what, format)
}
