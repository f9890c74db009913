package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/commands"
	"github.com/keyturn/keyturn/internal/program"
)

// These are the heaps of the programs of a small cluster, in bytes: see program.Build.
const (
	// bothHeap is for the watcher and the actuator together, which do not have their bursts at the same time.
	bothHeap = 24 << 20
	// Most of natsHeap are buffers.
	natsHeap    = 16 << 20
	projectHeap = 16 << 20
)

// These functions return programs. Heap is SmallHeap of program.Build: 0 in tests, which share their process.

func newRunCommand(heap uint64) *cobra.Command {
	return newProgram("run", "Watch sources and roll workloads in one pod: the watcher, the actuator and their NATS in one process.",
		program.NewSingle(version), heap)
}

func newNATSCommand(heap uint64) *cobra.Command {
	return newProgram("nats", "Run the NATS server of an installation with two pods, beside the actuator and without its rights in the cluster.",
		program.NewNATS(version), heap)
}

func newProjectCommand(heap uint64) *cobra.Command {
	return newProgram("project", "Copy values of Secrets into fields of custom resources that cannot refer to a Secret, and keep them equal.",
		program.NewProjector(version), heap)
}

// runner is a program with the flags of its options.
type runner interface {
	AddFlags(flags *pflag.FlagSet)
	Run(ctx context.Context, log io.Writer, build program.Build) error
}

func newProgram(use, short string, of runner, heap uint64) *cobra.Command {
	cmd := commands.NewRoot(use, short, version)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return of.Run(cmd.Context(), cmd.ErrOrStderr(), program.Build{Version: version, SmallHeap: heap})
	}
	of.AddFlags(cmd.Flags())
	return cmd
}
