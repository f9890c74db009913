package testbed

import (
	"context"
	"path/filepath"
)

// startOperator starts a program that brings kinds of its own to the cluster. It is built first if it was not yet. Stop
// ends it with the control plane, if nobody has before.
func (cp *ControlPlane) startOperator(ctx context.Context, env []string, name string, args ...string) (*Process, error) {
	path, err := Binary(ctx, cp.opts.Log, name)
	if err != nil {
		return nil, err
	}
	cp.mu.Lock()
	cp.binaries[name] = path
	cp.mu.Unlock()
	if err := cp.Apply(ctx, crdsPath(filepath.Dir(path))); err != nil {
		return nil, err
	}
	return cp.launchWith(env, name, args...)
}
