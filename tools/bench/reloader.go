package main

import (
	"context"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

// reloaderMode returns the same installation in Reloader's mode, as in the chart, with the strategy that writes the marker.
func (k *keyturn) reloaderMode() *keyturn {
	return keyturnOf(contenderMode, k.programs.With("KEYTURN_RELOADER=on,metrics", "KEYTURN_ROLL_ON_CREATE=never"))
}

// command is the command reloader with its defaults, which include the strategy that writes variables.
type command struct {
	runs
	reloader     *programs.Reloader
	cluster, dir string
}

// newCommand returns the command, with the keys and the streams of an installation, so that earlier changes are not new to it. They are in dir, under
// the names that the command expects.
func newCommand(ctx context.Context, cp *testbed.ControlPlane, dir string, k *keyturn) (*command, error) {
	reloader, err := programs.NewReloaderFrom(ctx, cp, "deploy", keyturnBinary)
	return &command{
		runs: runs{called: contenderCommand, accounts: []string{"reloader"}}, reloader: reloader, cluster: k.programs.Cluster(), dir: dir,
	}, err
}

func (c *command) start(ctx context.Context) error {
	err := c.begin(c.reloader.Start(c.dir, []string{
		"--cluster", c.cluster, "--state-dir", c.dir, "--log-level", "info", "--settle", "0s", "--max-rolls-per-hour", "0",
		"--resource-label-selector", contenderLabel + "!=" + contenderFloor,
	}, nil))
	if err != nil {
		return err
	}
	return c.ready(ctx)
}
