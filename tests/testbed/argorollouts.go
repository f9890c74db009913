package testbed

import (
	"context"
	"fmt"
	"strconv"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// StartArgoRollouts applies the custom resource definitions of Argo Rollouts, starts its controller as [argoRolloutsUser], and waits until it
// runs, which takes some seconds. It may be started again after the process has ended.
func (cp *ControlPlane) StartArgoRollouts(ctx context.Context) (*process.Process, error) {
	ports, err := process.FreePorts(2)
	if err != nil {
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	return cp.startHealthy(ctx, "Argo Rollouts", "http://"+process.Address(ports[0])+"/healthz", nil, build.ArgoRollouts,
		"--kubeconfig="+cp.kubeconfig(argoRolloutsUser),
		"--leader-elect=false",
		"--healthzPort="+strconv.Itoa(ports[0]),
		"--metricsPort="+strconv.Itoa(ports[1]),
		// Its default limits of requests are for large clusters.
		"--qps=200", "--burst=400")
}
