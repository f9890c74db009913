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

// The names of the measurements, for -run.
const (
	latency   = "latency"
	shared    = "shared"
	burst300  = "burst-300"
	burst1000 = "burst-1000"
	traced    = "traced"
	memory    = "memory"
	// fanOut takes longer than all others, and is not part of a run without -run.
	fanOut = "fan-out"
	// large is not part of a run without -run, either.
	large = "large"
)

// bench is one run.
type bench struct {
	settings settings
	cp       *testbed.ControlPlane
	cluster  *cluster
	observer *observer
	results  results
	began    time.Time
	// kubernetes is the version of the API server.
	kubernetes string
}

// say reports progress.
func (b *bench) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

func measureAll(ctx context.Context, s settings) (*report, error) {
	b := &bench{settings: s, began: time.Now(), results: make(results), cluster: newCluster(nil, s.scale)}
	if load := loadAverage(); load > 1 {
		b.say("this machine is busy (load average %.1f): trust only the ratios, and those with care", load)
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	if s.withoutPods() {
		if err := b.measureWithoutPods(ctx); err != nil {
			return nil, err
		}
	}
	if s.fanOut > 0 {
		if err := b.measureFanOut(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", fanOut, err)
		}
	}
	if s.large {
		if err := b.measureLarge(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", large, err)
		}
	}
	facts, err := b.facts(ctx)
	if err != nil {
		return nil, err
	}
	return &report{results: b.results, cluster: b.cluster, facts: facts, settings: s}, nil
}

// start starts a control plane, in a folder with the given name if it is to be kept, and returns it with a client for its admin.
// The caller must stop it.
func (b *bench) start(ctx context.Context, options testbed.Options, kept string) (*testbed.ControlPlane, kubernetes.Interface, error) {
	b.say("starting a control plane")
	if b.settings.keep != "" {
		options.Dir = filepath.Join(b.settings.keep, kept)
	}
	cp, err := testbed.Start(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		cp.Stop()
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		cp.Stop()
		return nil, nil, fmt.Errorf("asking for the version of the API server: %w", err)
	}
	b.kubernetes = server.GitVersion
	return cp, client, nil
}

// measureWithoutPods measures everything except the fan-out, on a control plane whose Deployments have no pods.
func (b *bench) measureWithoutPods(ctx context.Context) error {
	var err error
	options := testbed.Options{Log: os.Stdout, WithoutNode: true}
	if b.cp, b.cluster.client, err = b.start(ctx, options, "controlplane"); err != nil {
		return err
	}
	defer b.cp.Stop()
	floor, keyturn, err := newContenders(ctx, b.cp)
	if err != nil {
		return err
	}
	b.say("creating %d Deployments, and %d Secrets for each contender", b.cluster.deployments, b.cluster.deployments+1)
	if err := b.cluster.fill(ctx); err != nil {
		return err
	}
	observing, stop := context.WithCancel(ctx)
	defer stop()
	if b.observer, err = newObserver(observing, b.cluster.client, patience); err != nil {
		return err
	}
	collector := startCollector()
	defer collector.Close()
	confined, err := floor.confinedAs(ctx, b.cp)
	if err != nil {
		return err
	}
	contenders := []contender{floor, confined, keyturn}
	if b.settings.reloader {
		reloaders, err := newReloaders(ctx, b.cp, keyturn)
		if err != nil {
			return err
		}
		contenders = append(contenders, reloaders...)
	}
	if b.settings.selected.MatchString(traced) {
		contenders = append(contenders, keyturn.traced(collector.URL))
	}
	if err := b.rounds(ctx, contenders); err != nil {
		return err
	}
	if b.settings.selected.MatchString(memory) {
		if err := b.memories(ctx, filepath.Join(b.cp.Dir(), "memory")); err != nil {
			return fmt.Errorf("measuring the memory: %w", err)
		}
	}
	if b.settings.selected.MatchString(traced) && collector.received.Load() == 0 {
		return errors.New("no span was exported, so the cost of tracing was not measured")
	}
	return nil
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
