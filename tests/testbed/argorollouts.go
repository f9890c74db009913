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
	health, err := process.FreePort()
	if err != nil {
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	metrics, err := process.FreePort()
	if err != nil {
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	p, err := cp.startOperator(ctx, nil, build.ArgoRollouts,
		"--kubeconfig="+cp.kubeconfig(argoRolloutsUser),
		"--leader-elect=false",
		"--healthzPort="+strconv.Itoa(health),
		"--metricsPort="+strconv.Itoa(metrics),
		// Its default limits of requests are for large clusters.
		"--qps=200", "--burst=400")
	if err != nil {
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	if err := cp.healthy(ctx, p, "http://"+process.Address(health)+"/healthz"); err != nil {
		p.Kill()
		return nil, fmt.Errorf("start Argo Rollouts: %w", err)
	}
	return p, nil
}
