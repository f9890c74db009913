package testbed

import (
	"context"
	"fmt"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startHealthy starts an operator with startOperator, and waits until a URL of it is healthy. What it is called is for errors.
func (cp *ControlPlane) startHealthy(ctx context.Context, title, url string, env []string, name string, args ...string) (*process.Process, error) {
	p, err := cp.startOperator(ctx, env, name, args...)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", title, err)
	}
	if err := cp.healthy(ctx, p, url); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start %s: %w", title, err)
	}
	return p, nil
}

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
