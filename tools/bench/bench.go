package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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
	// fanOut takes longer than all others, and is not part of a run without -run. fanOutSplit are further contenders in it.
	fanOut      = "fan-out"
	fanOutSplit = "fan-out-split"
	// large is not part of a run without -run, either.
	large = "large"
	// onePod is the memory of keyturn run.
	onePod = "one-pod"
	// old needs -old.
	old = "old"
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
	b := &bench{settings: s, began: time.Now(), results: make(results), cluster: newCluster(s.scale)}
	if load := loadAverage(); load > 1 {
		b.say("this machine is busy (load average %.1f): trust only the ratios, and those with care", load)
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name    string
		asked   bool
		measure func(context.Context) error
	}{
		{"without pods", s.withoutPods(), b.measureWithoutPods},
		{fanOut, s.fanOut > 0, b.measureFanOut},
		{large, s.large, b.measureLarge},
		{onePod, s.selected.MatchString(onePod), b.measurePods},
		{old, s.old != "", b.measureOld},
	} {
		if !part.asked {
			continue
		}
		if err := part.measure(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	facts, err := b.facts(ctx)
	if err != nil {
		return nil, err
	}
	return &report{results: b.results, cluster: b.cluster, facts: facts, settings: s}, nil
}

// newPlane starts a control plane without pods, with some content, and returns a bench that observes it. The caller must call stop.
func (b *bench) newPlane(ctx context.Context, name string, content *cluster, apiServerArgs ...string) (p *bench, stop func(), err error) {
	p = &bench{settings: b.settings, began: b.began, results: b.results, cluster: content}
	options := testbed.Options{WithoutNode: true, APIServerArgs: apiServerArgs}
	if p.cp, content.client, err = b.start(ctx, options, name); err != nil {
		return nil, nil, err
	}
	observing, cancel := context.WithCancel(ctx)
	stop = func() {
		cancel()
		p.cp.Stop()
	}
	b.say("creating %d Deployments and %d Secrets for each contender", content.deployments, content.deployments+1)
	err = content.fill(ctx)
	if err == nil {
		// Keyturn writes the first records at a rate of 20 a second.
		p.observer, err = newObserver(observing, content.client, patience+time.Duration(content.deployments)*100*time.Millisecond)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return p, stop, nil
}

// unaudited is the argument of an API server whose audit log nobody reads.
const unaudited = "--audit-log-path="

// start starts a control plane, in a folder with the given name if it is to be kept, and returns it with a client for its admin.
// The caller must stop it.
func (b *bench) start(ctx context.Context, options testbed.Options, kept string) (*testbed.ControlPlane, kubernetes.Interface, error) {
	b.say("starting a control plane")
	options.Log = os.Stdout
	if b.settings.keep != "" {
		options.Dir = filepath.Join(b.settings.keep, kept)
	}
	cp, err := testbed.Start(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	servers, _ := coresApart(runtime.NumCPU())
	if err := pin(cp.Processes(), servers); err != nil {
		cp.Stop()
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
	p, stop, err := b.newPlane(ctx, "controlplane", b.cluster)
	if err != nil {
		return err
	}
	defer stop()
	floor, keyturn, err := newContenders(ctx, p.cp)
	if err != nil {
		return err
	}
	collector := startCollector()
	defer collector.Close()
	contenders := []contender{floor.bare(), floor, keyturn}
	if b.settings.reloader {
		command, err := newCommand(ctx, p.cp, filepath.Join(programsDir(p.cp), "command"), keyturn)
		if err != nil {
			return err
		}
		contenders = append(contenders, keyturn.reloaderMode(), command)
	}
	if b.settings.selected.MatchString(traced) {
		contenders = append(contenders, keyturn.traced(collector.URL))
	}
	if isApart() && b.settings.selected.MatchString(burst300) {
		contenders = append(contenders, keyturn.oneCore())
	}
	if err := p.rounds(ctx, contenders); err != nil {
		return err
	}
	if b.settings.selected.MatchString(memory) {
		if err := p.memories(ctx, filepath.Join(p.cp.Dir(), "memory")); err != nil {
			return fmt.Errorf("measuring the memory: %w", err)
		}
	}
	if b.settings.selected.MatchString(traced) && collector.received.Load() == 0 {
		return errors.New("no span was exported, so the cost of tracing was not measured")
	}
	return nil
}

// rounds measures the contenders in turn, in every other round in reverse: the control plane is slower the more it has done.
func (b *bench) rounds(ctx context.Context, contenders []contender) error {
	for round := range b.settings.roundsNeeded() {
		for _, c := range contenders {
			b.say("round %d of %d: %s", round+1, b.settings.rounds, c.name())
			if err := b.round(ctx, c); err != nil {
				return fmt.Errorf("round %d of the %s: %w", round+1, c.name(), err)
			}
		}
		slices.Reverse(contenders)
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
