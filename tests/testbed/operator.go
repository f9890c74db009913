package testbed

import (
	"context"
	"fmt"

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

// ApplyKindsOf applies the custom resource definitions of an operator, such as [CertManager], but does not start it, so objects of its
// kinds stay as they are.
func (cp *ControlPlane) ApplyKindsOf(ctx context.Context, operator string) error {
	kinds, err := build.Kinds(ctx, operator)
	if err == nil {
		err = cp.Apply(ctx, kinds)
	}
	if err != nil {
		return fmt.Errorf("apply the kinds of %s: %w", operator, err)
	}
	return nil
}
