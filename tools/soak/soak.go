package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// soak is one run.
type soak struct {
	settings settings
	out      io.Writer
	mu       sync.Mutex // of out
	began    time.Time

	plane    *testbed.ControlPlane
	fleet    fleet
	changes  *changes
	writer   *writer
	observer *observer
	keyturn  *installation
	history  *history
	from     int64

	inflicted []inflicted
	incidents []incident
}

// say reports progress.
func (s *soak) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%s %7.1fs  %s\n", time.Now().Format(time.TimeOnly), time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// Write implements io.Writer, for the progress of the test bed.
func (s *soak) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// random returns the random source for one kind of decisions. Each kind has its own source, so that it does not depend on how
// often another one is used.
func (s *soak) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.settings.seed, stream))
}

// runSoak runs the whole soak, and returns the report. The files of the programs are kept unless everything went well.
func runSoak(ctx context.Context, settings settings, out io.Writer) (_ *report, err error) {
	s := &soak{settings: settings, out: out, began: time.Now(), observer: newObserver()}
	s.say("seed %d: %s of %v on %d workloads, with %d actuators",
		settings.seed, settings.duration, settings.kinds, settings.workloads, settings.actuators)
	dir := settings.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "keyturn-soak-"); err != nil {
			return nil, fmt.Errorf("making a folder: %w", err)
		}
	}
	r, err := s.run(ctx, dir)
	if settings.keep == "" && err == nil && !r.failed() {
		return r, os.RemoveAll(dir)
	}
	s.say("logs and stores are kept in %s", dir)
	return r, err
}

func (s *soak) run(ctx context.Context, dir string) (_ *report, err error) {
	if s.settings.binaries == (programs.Binaries{}) {
		s.say("building both programs")
		if s.settings.binaries, err = programs.Build(ctx, false); err != nil {
			return nil, err
		}
	}
	s.say("starting a control plane; the first run builds its servers, which takes some minutes")
	if s.plane, err = testbed.Start(ctx, testbed.Options{Dir: filepath.Join(dir, "control-plane"), Log: s}); err != nil {
		return nil, err
	}
	defer s.plane.Stop()
	config := s.plane.Config()
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	s.writer = &writer{acknowledged: make(map[string][]int64)}
	if s.writer.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}

	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	running.Go(func() {
		if err := s.observer.run(ctx, s.plane, namespace); err != nil {
			stop(fmt.Errorf("observing: %w", err))
		}
	})
	running.Go(func() { s.revive(ctx) })
	s.keyturn, err = newInstallation(ctx, s.plane, s.settings)
	defer s.keyturn.close()
	if err != nil {
		return nil, err
	}
	s.history = newHistory(s.keyturn.natsURL())
	if err := s.prepare(ctx, client); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if err := s.disturb(ctx, client); err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	s.say("all %d faults are over", len(s.inflicted))
	return s.conclude(ctx)
}

// revive restarts servers of the control plane that have ended by themselves, until ctx is done.
func (s *soak) revive(ctx context.Context) {
	for testbed.Sleep(ctx, time.Second) == nil {
		revived, err := s.plane.Revive()
		if err != nil {
			s.say("cannot start a server again: %v", err)
		}
		for _, name := range revived {
			s.say("%s had ended by itself, and is started again", name)
		}
	}
}

// prepare fills the namespace, starts Keyturn, and changes every source once, so that each workload has a record of everything that it
// reads.
func (s *soak) prepare(ctx context.Context, client kubernetes.Interface) error {
	s.fleet = newFleet(s.random(1), s.settings.workloads)
	s.changes = newChanges(s.random(2), s.fleet)
	s.say("creating %d workloads and %d sources", len(s.fleet.members), len(s.fleet.sources))
	if err := s.fleet.create(ctx, client); err != nil {
		return err
	}
	s.say("starting Keyturn")
	if err := s.keyturn.start(ctx); err != nil {
		return err
	}
	s.say("changing every source once")
	for _, source := range s.fleet.sources {
		if err := s.writer.write(ctx, s.changes.all(source)); err != nil {
			return err
		}
	}
	if err := s.settled(ctx); err != nil {
		return fmt.Errorf("waiting until every workload has rolled for everything that it reads: %w", err)
	}
	if err := s.history.collect(ctx); err != nil {
		return err
	}
	s.from = s.observer.now().newest()
	return nil
}

// disturb inflicts faults, and changes sources at the same time, until the time is up and the last round has ended.
func (s *soak) disturb(ctx context.Context, client kubernetes.Interface) error {
	writing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.write(writing) })
	defer running.Wait()
	defer stop()
	c := &chaos{plane: s.plane, client: client, keyturn: s.keyturn, history: s.history, say: s.say}
	rounds := &rounds{random: s.random(3), kinds: s.settings.kinds, pace: s.settings.pace()}
	for until := time.Now().Add(s.settings.duration); time.Now().Before(until); {
		next := rounds.next()
		s.say("round %d: %s", rounds.made, next)
		if err := s.round(ctx, c, next); err != nil {
			return err
		}
		s.progress()
		if err := testbed.Sleep(ctx, next.calm); err != nil {
			return err
		}
	}
	return nil
}

// round inflicts the faults of a round, and waits until the last one has ended.
func (s *soak) round(ctx context.Context, c *chaos, r round) error {
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, f := range r.faults {
		running.Go(func() {
			done, found, err := c.inflict(ctx, f)
			mu.Lock()
			defer mu.Unlock()
			s.inflicted, s.incidents = append(s.inflicted, done), append(s.incidents, found...)
			failed = errors.Join(failed, err)
		})
	}
	running.Wait()
	return failed
}

// write writes changes until ctx is done.
func (s *soak) write(ctx context.Context) {
	for ctx.Err() == nil {
		c := s.changes.next()
		// A failed write is either not in the journal, or it is there although the response was lost.
		_ = s.writer.write(ctx, c)
		_ = testbed.Sleep(ctx, c.then)
	}
}

// conclude waits until everything has settled, and returns the verdict.
func (s *soak) conclude(ctx context.Context) (*report, error) {
	s.say("waiting for quiet")
	err := s.settled(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, errors.Join(err, context.Cause(ctx))
	case err != nil:
		s.say("it did not become quiet: %v", err)
	}
	if err := s.history.collect(ctx); err != nil {
		return nil, err
	}
	e := s.evidence()
	if missing := s.writer.missing(e.journal); len(missing) > 0 {
		return nil, fmt.Errorf("etcd has lost writes that it had acknowledged, so nothing can be said: %v", missing)
	}
	incidents := append(e.verdict(), s.incidents...)
	incidents = append(incidents, s.keyturn.crashes()...)
	return &report{settings: s.settings, evidence: e, faults: s.inflicted, incidents: incidents}, nil
}

func (s *soak) evidence() evidence {
	return evidence{journal: s.observer.now(), readers: s.fleet.readers(), from: s.from, told: s.history.told, amiss: s.history.lost}
}

// progress reports how far the soak is.
func (s *soak) progress() {
	e := s.evidence()
	s.say("%d rolls so far; workloads wait for %d sources", e.journal.rolls(s.from), len(e.outdated()))
}
