package testbed

import (
	"context"
	"fmt"
	"strconv"

	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// StartExternalSecrets applies the custom resource definitions of the External Secrets Operator, starts its controllers as
// [externalSecretsUser], and waits until they run, which takes some seconds. They reconcile so many objects of each kind concurrently. There is no
// webhook. It may be started again after the process has ended.
func (cp *ControlPlane) StartExternalSecrets(ctx context.Context, concurrent int) (*process.Process, error) {
	port, err := process.FreePort()
	if err != nil {
		return nil, fmt.Errorf("start External Secrets: %w", err)
	}
	metrics, health := "0", "http://"+process.Address(port)+"/healthz" // "0" is off.
	args := []string{"--concurrent=" + strconv.Itoa(concurrent)}
	if build.Oldest() {
		// It has no health probe.
		metrics = process.Address(port)
		health = "http://" + metrics + "/metrics"
	} else {
		args = append(args, "--live-addr="+process.Address(port))
	}
	args = append(args, "--metrics-addr="+metrics)
	// It has no flag for the kubeconfig.
	env := []string{"KUBECONFIG=" + cp.kubeconfig(externalSecretsUser)}
	return cp.startHealthy(ctx, "External Secrets", health, env, build.ExternalSecrets, args...)
}
