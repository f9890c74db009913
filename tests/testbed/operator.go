package testbed

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startOperator starts an operator with its own kinds. If necessary, it is built first. Stop ends it with the control plane,
// if it has not been ended before.
func (cp *ControlPlane) startOperator(ctx context.Context, env []string, name string, args ...string) (*process.Process, error) {
	path, err := cp.applyKindsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	cp.mu.Lock()
	cp.binaries[name] = path
	cp.mu.Unlock()
	return cp.launchWith(env, name, args...)
}

// ApplyKindsOf applies the custom resource definitions of an operator, such as [CertManager], but does not start it, so objects of its
// kinds stay as they are. If necessary, it is built first.
func (cp *ControlPlane) ApplyKindsOf(ctx context.Context, operator string) error {
	if _, err := cp.applyKindsOf(ctx, operator); err != nil {
		return fmt.Errorf("apply the kinds of %s: %w", operator, err)
	}
	return nil
}

// applyKindsOf is like [ControlPlane.ApplyKindsOf], and returns the path of the operator's binary.
func (cp *ControlPlane) applyKindsOf(ctx context.Context, name string) (string, error) {
	path, err := build.Binary(ctx, cp.opts.Log, name)
	if err != nil {
		return "", err
	}
	return path, cp.Apply(ctx, build.CRDsPath(filepath.Dir(path)))
}
