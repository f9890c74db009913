package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testbed"
)

// The measurements, as -run knows them.
const (
	latency   = "latency"
	shared    = "shared"
	burst300  = "burst-300"
	burst1000 = "burst-1000"
	traced    = "traced"
	memory    = "memory"
)

// bench is one run.
type bench struct {
	settings settings
	cp       *testbed.ControlPlane
	cluster  *cluster
	observer *observer
	results  results
	began    time.Time
}

// say reports progress.
func (b *bench) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func measureAll(ctx context.Context, s settings) (*report, error) {
	b := &bench{settings: s, began: time.Now(), results: make(results)}
	if load := loadAverage(); load > 1 {
		b.say("this machine is busy (load average %.1f): trust only the ratios, and those with care", load)
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	b.say("starting a control plane")
	options := testbed.Options{Log: os.Stdout, WithoutKwok: true, WithoutScheduler: true}
	if s.keep != "" {
		options.Dir = filepath.Join(s.keep, "controlplane")
	}
	var err error
	if b.cp, err = testbed.Start(ctx, options); err != nil {
		return nil, err
	}
	defer b.cp.Stop()
	client, err := kubernetes.NewForConfig(b.cp.Config())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	b.cluster = newCluster(client, s.scale)
	dir := filepath.Join(b.cp.Dir(), "programs")
	keyturn, err := newKeyturn(ctx, b.cp, dir)
	if err != nil {
		return nil, err
	}
	floor, err := newFloor(ctx, b.cp, dir)
	if err != nil {
		return nil, err
	}
	b.say("creating %d Deployments, and %d Secrets for each contender", b.cluster.deployments, b.cluster.deployments+1)
	if err := b.cluster.fill(ctx); err != nil {
		return nil, err
	}
	observing, stop := context.WithCancel(ctx)
	defer stop()
	if b.observer, err = newObserver(observing, client); err != nil {
		return nil, err
	}
	collector := startCollector()
	defer collector.Close()
	contenders := []contender{floor, keyturn}
	if s.reloader {
		reloaders, err := newReloaders(ctx, b.cp, keyturn, dir)
		if err != nil {
			return nil, err
		}
		contenders = append(contenders, reloaders...)
	}
	if s.selected.MatchString(traced) {
		contenders = append(contenders, keyturn.traced(collector.URL))
	}
	if err := b.rounds(ctx, contenders); err != nil {
		return nil, err
	}
	if s.selected.MatchString(memory) {
		if err := b.memories(ctx, filepath.Join(b.cp.Dir(), "memory")); err != nil {
			return nil, fmt.Errorf("measuring the memory: %w", err)
		}
	}
	if s.selected.MatchString(traced) && collector.received.Load() == 0 {
		return nil, errors.New("no span was exported, so the cost of tracing was not measured")
	}
	facts, err := b.facts(ctx)
	if err != nil {
		return nil, err
	}
	return &report{results: b.results, cluster: b.cluster, facts: facts, settings: s}, nil
}

// rounds measures the contenders in turn.
func (b *bench) rounds(ctx context.Context, contenders []contender) error {
	for round := range b.settings.roundsNeeded() {
		for _, c := range contenders {
			b.say("round %d of %d: %s", round+1, b.settings.rounds, c.name())
			if err := b.round(ctx, c); err != nil {
				return fmt.Errorf("round %d of the %s: %w", round+1, c.name(), err)
			}
		}
	}
	return nil
}

// build builds the programs as they are shipped.
func (b *bench) build(ctx context.Context) error {
	b.say("building the programs: make build")
	out, err := exec.CommandContext(ctx, "make", "build").CombinedOutput()
	if err != nil {
		return fmt.Errorf("make build, in the root of the repository: %w\n%s", err, out)
	}
	return nil
}
