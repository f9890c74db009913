package testbed

import (
	"context"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startOperator starts an operator with its own kinds. If necessary, it is built first. Stop ends it with the control plane,
// if it has not been ended before.
func (cp *ControlPlane) startOperator(ctx context.Context, env []string, name string, args ...string) (*process.Process, error) {
	path, err := build.Binary(ctx, cp.opts.Log, name)
	if err != nil {
		return nil, err
	}
	if err := cp.ApplyKindsOf(ctx, name); err != nil {
		return nil, err
	}
	cp.mu.Lock()
	cp.binaries[name] = path
	cp.mu.Unlock()
	return cp.launchWith(env, name, args...)
}
