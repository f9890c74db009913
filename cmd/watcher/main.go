// The watcher publishes an event for each change of a source in its cluster.
package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/keyturn/keyturn/internal/health"
	"github.com/keyturn/keyturn/internal/identity"
	"github.com/keyturn/keyturn/internal/process"
	"github.com/keyturn/keyturn/internal/sources"
)

// version is set when a release is built.
var version = "dev"

// smallHeap is the heap of the watcher of a small cluster, in bytes: see process.Program.
const smallHeap = 24 << 20

const short = "Publish an event for each change of a source: a Secret, a ConfigMap, or an object that writes them."

func main() {
	os.Exit(process.Main(func(ctx context.Context) error { return newCommand(smallHeap).ExecuteContext(ctx) }))
}

// newCommand returns the command. smallHeap is that of process.Program.
func newCommand(smallHeap uint64) *cobra.Command {
	s := newSettings()
	cmd := &cobra.Command{
		Use: "watcher", Short: short, Long: short + "\n\n" + process.EnvironmentUsage,
		Args: cobra.NoArgs, Version: process.BuildVersion(version), SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := process.Environment(cmd.Flags()); err != nil {
				return err
			}
			return s.run(cmd.Context(), cmd.ErrOrStderr(), smallHeap)
		},
	}
	s.addFlags(cmd.Flags())
	cmd.AddCommand(newKeysCommand())
	return cmd
}

func (s *settings) run(ctx context.Context, log io.Writer, smallHeap uint64) error {
	s.watcher.Cluster = s.process.Cluster
	if err := errors.Join(s.process.Validate(), s.watcher.Validate()); err != nil {
		return err
	}
	return process.Run(ctx, process.Program{
		Name: "watcher", Version: version, Options: s.process, Log: log, SmallHeap: smallHeap,
		Prepare: s.prepare, Identify: identity.Claim,
	})
}

func (s *settings) prepare(r *process.Runtime) (process.Work, error) {
	var err error
	if !s.watcher.StoresAlone() {
		if s.watcher.Dynamic, err = s.process.Kube.Dynamic(); err != nil {
			return process.Work{}, err
		}
		if s.watcher.Client, err = s.process.Kube.Client(); err != nil {
			return process.Work{}, err
		}
	}
	s.watcher.Logger, s.watcher.Tracer, s.watcher.Meter = r.Logger, r.Tracer("sources"), r.Meter("sources")
	s.watcher.Progress = func() *health.Progress { return r.Progress("publishing") }
	watcher, err := sources.New(s.watcher)
	if err != nil {
		return process.Work{}, err
	}
	r.Health.AddReadiness("sources", watcher.Ready)
	return process.Work{Client: s.watcher.Client, Run: watcher.Run}, nil
}
