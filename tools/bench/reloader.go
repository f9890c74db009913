package main

import (
	"context"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// reloaderBinary is the command as built by "make build".
const reloaderBinary = "bin/reloader"

// newReloaders returns the contenders that replace Reloader: the mode of both programs, and the command. They continue on the
// streams of Keyturn, so that earlier changes are not new to them.
func newReloaders(ctx context.Context, cp *testbed.ControlPlane, k *keyturn) ([]contender, error) {
	command, err := newCommand(ctx, cp, programsDir(cp), k)
	if err != nil {
		return nil, err
	}
	return []contender{k.reloaderMode(), command}, nil
}

// reloaderMode returns the same installation in Reloader's mode, as in the chart, with the strategy that writes the marker.
func (k *keyturn) reloaderMode() *keyturn {
	return &keyturn{called: contenderMode, programs: k.programs.With(
		"KEYTURN_RELOADER=true", "KEYTURN_RELOADER_STRATEGY=annotations", "KEYTURN_RELOADER_METRICS=true", "KEYTURN_ROLL_ON_CREATE=never",
	)}
}

// command is the command reloader with its defaults, which include the strategy that writes variables.
type command struct {
	reloader *programs.Reloader
	cluster  string
	dir      string
	program  *programs.Program
}

// newCommand returns the command, with the keys and the streams of an installation. They are in dir, under the names that the
// command expects.
func newCommand(ctx context.Context, cp *testbed.ControlPlane, dir string, k *keyturn) (*command, error) {
	reloader, err := programs.NewReloaderFrom(ctx, cp, "deploy", reloaderBinary)
	if err != nil {
		return nil, err
	}
	return &command{reloader: reloader, cluster: k.programs.Cluster(), dir: dir}, nil
}

func (c *command) name() string { return contenderCommand }

func (c *command) owner() string { return contenderKeyturn }

func (c *command) users() []string {
	return []string{testbed.ServiceAccountUser(programs.SystemNamespace, "reloader")}
}

func (c *command) processes() []*process.Process { return []*process.Process{c.program.Process} }

func (c *command) start(ctx context.Context) error {
	var err error
	c.program, err = c.reloader.Start(c.dir, []string{
		"--cluster", c.cluster, "--state-dir", c.dir, "--log-level", "info", "--settle", "0s", "--max-rolls-per-hour", "0",
		"--resource-label-selector", contenderLabel + "!=" + contenderFloor,
	}, nil)
	if err != nil {
		return err
	}
	return c.program.Ready(ctx)
}

func (c *command) stop() {
	if c.program != nil {
		// Unfinished work is on the stream, so it does not matter how it ends.
		_ = c.program.Stop(stopGrace)
	}
}
