package main

import (
	"context"
	"os"

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
	reloader *programs.Reloader
	k        *keyturn
	dir      string
}

// newCommand returns the command, with its streams in dir, and with the key of an installation, so that earlier changes are not new to it.
func newCommand(ctx context.Context, cp *testbed.ControlPlane, dir string, k *keyturn) (*command, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	reloader, err := programs.NewReloaderFrom(ctx, cp, "deploy", keyturnBinary)
	return &command{runs: runs{called: contenderCommand, accounts: []string{"reloader"}}, reloader: reloader, k: k, dir: dir}, err
}

func (c *command) start(ctx context.Context) error {
	err := c.begin(c.reloader.Start(c.dir, []string{
		"--cluster", c.k.programs.Cluster(), "--fingerprint-key-file", c.k.programs.KeyFile(), "--log-level", "info", "--settle", "0s",
		"--max-rolls-per-hour", "0", "--resource-label-selector", contenderLabel + "!=" + contenderFloor,
	}, nil))
	if err != nil {
		return err
	}
	return c.ready(ctx)
}
