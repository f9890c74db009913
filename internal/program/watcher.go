package program

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/internal/telemetry"
)

// Watcher is the program that publishes an event for each change of a source. Its fields are its options.
type Watcher struct {
	Process Options
	Sources sources.Options
}

// NewWatcher returns a watcher with the defaults.
func NewWatcher(version string) *Watcher {
	return &Watcher{Process: defaultOptions("watcher", version), Sources: sources.DefaultOptions()}
}

// AddFlags adds the flags of the options.
func (w *Watcher) AddFlags(flags *pflag.FlagSet) {
	w.Process.addClusterFlags(flags)
	w.Process.addRunFlags(flags)
	flags.StringSliceVar(&w.Sources.Namespaces, "namespaces", nil, "`namespaces` to watch, separated by commas; empty means all")
	w.Sources.AddFlags(flags)
}

// Run runs the watcher until ctx ends or a step fails. An error about the options has a line for each problem. Log lines go to log.
func (w *Watcher) Run(ctx context.Context, log io.Writer, build Build) error {
	w.Sources.Cluster = w.Process.Cluster
	if err := errors.Join(w.Process.validate(), w.Sources.Validate()); err != nil {
		return err
	}
	return run(ctx, program{
		Name: "watcher", Build: build, Options: w.Process, Log: log,
		Parts: []part{{Role: "watcher", Prepare: w.prepare, Identify: claimName}},
	})
}

func (w *Watcher) prepare(r *runtime) (prepared, error) {
	var err error
	if !w.Sources.StoresAlone() {
		if w.Sources.Dynamic, err = w.Process.Kube.Dynamic(); err != nil {
			return prepared{}, err
		}
		if w.Sources.Client, err = w.Process.Kube.Client(); err != nil {
			return prepared{}, err
		}
	}
	w.Sources.Logger, w.Sources.Tracer, w.Sources.Meter = r.Logger, r.Tracer("sources"), r.Meter("sources")
	w.Sources.Progress = func() *telemetry.Progress { return r.Progress("publishing") }
	watcher, err := sources.New(w.Sources)
	if err != nil {
		return prepared{}, err
	}
	r.Health.AddReadiness("sources", watcher.Ready)
	return prepared{Client: w.Sources.Client, Run: watcher.Run}, nil
}
