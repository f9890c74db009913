package testbed

import (
	"context"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// startNode starts the cluster's only node, which is simulated: pods are bound to it and become ready within milliseconds, unless their
// nodeSelector or affinity refuses it, and pods of Jobs succeed. It then leaves them alone until they are deleted, so a test may give them any
// status.
func (cp *ControlPlane) startNode() (ready, error) {
	address := process.Address(cp.ports.node)
	p, err := cp.launch(build.Node, "--kubeconfig="+cp.kubeconfig(nodeUser), "--address="+address)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return cp.healthy(ctx, p, "http://"+address+"/healthz") }, nil
}
