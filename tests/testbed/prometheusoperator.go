package testbed

import (
	"context"
	"fmt"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// StartPrometheusOperator applies the custom resource definitions of Prometheus Operator, starts it as [prometheusUser], and waits until it runs,
// which takes some seconds. It may be started again after the process has ended.
func (cp *ControlPlane) StartPrometheusOperator(ctx context.Context) (*process.Process, error) {
	port, err := process.FreePort()
	if err != nil {
		return nil, fmt.Errorf("start Prometheus Operator: %w", err)
	}
	// It has no flag for the kubeconfig.
	env := []string{"KUBECONFIG=" + cp.kubeconfig(prometheusUser)}
	return cp.startHealthy(ctx, "Prometheus Operator", "http://"+process.Address(port)+"/healthz", env, build.PrometheusOperator,
		"--web.listen-address="+process.Address(port),
		"--kubelet-endpoints=false",
		"--auto-gomemlimit-ratio=0")
}
